/*
 * Answers that may take long are made in a child process: a copy of this one, with all of its data,
 * no rights, a limit of CPU time and a deadline. The child writes its answer into a file in memory,
 * from which the daemon sends it. fork() costs the loop only the copy of its page tables. A child
 * that does not end although it was killed keeps its slot until it ends.
 *
 * In the child the function that handles the request is called again (request.apart_fd tells which
 * of the two processes it is in), and answer_x() writes the answer instead of sending it.
 */
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/release.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/confine.h"
#include "daemon/ground/log.h"

#define RUNNING_MAX    2 /* children of one kind at a time */
#define WAITING_MAX    32
#define ANSWER_MAX     (128ul << 20) /* bytes */
#define MEMORY_MAX     (320ul << 20) /* bytes that a child may use beyond what the daemon has */
#define STATUS_TOO_BIG 3 /* a child's exit status: the answer is larger than ANSWER_MAX */
#define SETTLE_NS      (NS_PER_S / 2) /* the longest wait for windows on their way to the disk */
#define LOOK_NS	       (10 * NS_PER_MS)

static const struct {
	rlim_t cpu_s;
	uint64_t deadline_ns;
	int nice;
} limits[APART_KIND_COUNT] = {
	[APART_LIVE] = { 10, 30 * NS_PER_S, 0 },
	[APART_HISTORY] = { 60, 110 * NS_PER_S, 10 }, /* the command line waits for 120 s */
};

/* The beginning of the file in memory, before the answer. */
struct head {
	uint32_t status;
	bool counted; /* counts is set */
	struct report_counts counts;
	uint64_t len;
	char content_type[64];
};

struct apart {
	struct apart *next;
	struct serve *serve;
	struct request *request; /* NULL = nobody waits for the answer any more */
	enum apart_kind kind;
	uint64_t begin_mono_ns;
	int out_fd;
	pid_t pid; /* 0 = not started */
	int pidfd;
	struct loop_source *source;
	struct loop_timer *deadline;
};

/* ---- in the child ---------------------------------------------------------------------------- */

static void apart_limit(int resource, rlim_t n)
{
	const struct rlimit l = { n, n };

	(void)setrlimit(resource, &l);
}

/* A limit of data, bytes. None under a sanitizer, which maps far more memory than it uses. */
static rlim_t memory_limit(void)
{
#ifdef __SANITIZE_ADDRESS__
	return RLIM_INFINITY;
#else
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_MAX;
#endif
}

/* Makes the OOM killer choose this process and not the daemon. */
static void be_the_first_to_go(void)
{
	CLEANUP(fd_closep) int fd = -1;

	/* the files in /proc of a process that gave up rights are owned by root */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, "1000", 4);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Closes all other descriptors, so that no pipe, socket or clock of the daemon stays open longer
 * than the daemon wants. */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 3)
		(void)close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		(void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	(void)close_range((unsigned)high + 1, ~0u, 0);
}

static _Noreturn void run_child(struct apart *a, pid_t daemon)
{
	struct request *r = a->request;
	struct store *store = host_store(a->serve->host);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon)
		_exit(1);
	close_others(a->out_fd, store ? store_dir_fd(store) : a->out_fd);
	be_the_first_to_go();
	(void)setpriority(PRIO_PROCESS, 0, limits[a->kind].nice);
	(void)signal(SIGXFSZ, SIG_IGN);
	apart_limit(RLIMIT_CPU, limits[a->kind].cpu_s);
	apart_limit(RLIMIT_CORE, 0);
	apart_limit(RLIMIT_FSIZE, ANSWER_MAX);
	apart_limit(RLIMIT_DATA, memory_limit());
	(void)confine_capabilities(0);
	r->apart_fd = a->out_fd;
	_exit(api_route(r, r->method, r->url) == MHD_YES ? 0 : 1);
}

static bool apart_write_all(int fd, const void *p, size_t len)
{
	const char *at = p;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

enum MHD_Result apart_write(struct request *r, unsigned status, const char *content_type,
			    const struct report_counts *counts, const char *body, size_t len)
{
	struct head h = { .status = status, .len = len };

	snprintf(h.content_type, sizeof(h.content_type), "%s", content_type);
	if (counts) {
		h.counted = true;
		h.counts = *counts;
	}
	if (!apart_write_all(r->apart_fd, &h, sizeof(h)) ||
	    !apart_write_all(r->apart_fd, body, len))
		_exit(STATUS_TOO_BIG);
	return MHD_YES;
}

/* ---- in the daemon --------------------------------------------------------------------------- */

static void start_waiting(struct serve *s);

static void apart_free(struct apart *a)
{
	struct apart **link;

	for (link = &a->serve->aparts; *link && *link != a; link = &(*link)->next)
		;
	if (*link)
		*link = a->next;
	loop_source_free(a->source);
	loop_timer_free(a->deadline);
	fd_close(a->pidfd);
	fd_close(a->out_fd);
	free(a);
}

/* Resumes the request, for which an answer or a refusal has been queued. */
static void apart_answered(struct apart *a)
{
	if (!a->request)
		return;
	a->request->on_end = NULL;
	serve_resume(a->request);
	a->request = NULL;
}

/* The child has read hostile data: only a header that makes sense is believed. */
static bool send_file(struct apart *a)
{
	struct head h;
	struct stat st;

	if (pread(a->out_fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || fstat(a->out_fd, &st) < 0 ||
	    h.len != (uint64_t)st.st_size - sizeof(h) || h.status < 200 || h.status > 599)
		return false;
	h.content_type[sizeof(h.content_type) - 1] = '\0';
	return answer_file(a->request, h.status, h.content_type, h.counted ? &h.counts : NULL,
			   TAKE_FD(a->out_fd), sizeof(h), h.len) == MHD_YES;
}

static void apart_refuse(struct apart *a, const char *why)
{
	(void)answer_error(a->request, 503, "%s", why);
}

static void on_child(void *userdata, uint32_t events)
{
	struct apart *a = userdata;
	struct serve *s = a->serve;
	int status = 0;

	(void)events;
	if (release_ended(a->pid, &status, NULL) == 0)
		return;
	if (!a->request)
		;
	else if (WIFSIGNALED(status))
		apart_refuse(
			a,
			"the answer took too much time or memory; ask for a shorter time or for one JVM");
	else if (WEXITSTATUS(status) == STATUS_TOO_BIG)
		apart_refuse(a, "the answer is too large; ask for a shorter time or for one JVM");
	else if (WEXITSTATUS(status) != 0 || !send_file(a))
		apart_refuse(a, "the answer could not be written");
	apart_answered(a);
	apart_free(a);
	start_waiting(s);
}

static void apart_on_deadline(void *userdata)
{
	struct apart *a = userdata;

	a->deadline = loop_timer_free(a->deadline);
	(void)kill(a->pid, SIGKILL);
	if (a->request)
		apart_refuse(a, "the answer took too long; ask for a shorter time or for one JVM");
	apart_answered(a);
}

/* false: there is no child, and the refusal was sent. */
static bool apart_start(struct apart *a)
{
	pid_t daemon = getpid();
	struct serve *s = a->serve;

	a->out_fd = memfd_create("kindling-answer", MFD_CLOEXEC);
	a->pid = a->out_fd < 0 ? -1 : fork();
	if (a->pid == 0)
		run_child(a, daemon);
	if (a->pid > 0) {
		a->pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
		if (a->pidfd >= 0 &&
		    loop_add(s->loop, a->pidfd, EPOLLIN, on_child, a, &a->source) == 0 &&
		    loop_timer_add(s->loop, limits[a->kind].deadline_ns, 0, apart_on_deadline, a,
				   &a->deadline) == 0)
			return true;
		(void)kill(a->pid, SIGKILL);
		(void)waitpid(a->pid, NULL, WNOHANG); /* else it stays a zombie */
	}
	apart_refuse(a, "kindlingd is busy, try again");
	return false;
}

static bool may_start(const struct apart *a)
{
	unsigned running = 0;

	for (const struct apart *o = a->serve->aparts; o; o = o->next)
		running += o->kind == a->kind && o->pid;
	return running < RUNNING_MAX;
}

/* Are all windows on disk? The child reads the disk, and those that have just left memory may
 * still be in the worker thread. */
static bool is_settled(const struct apart *a)
{
	return a->kind != APART_HISTORY || host_is_settled(a->serve->host) ||
	       clock_mono_ns() - a->begin_mono_ns > SETTLE_NS;
}

static void start_waiting(struct serve *s)
{
	struct apart *a = s->aparts, *next;

	for (; a; a = next) {
		next = a->next;
		if (a->pid || !may_start(a))
			continue;
		if (!is_settled(a)) {
			loop_timer_set(s->apart_timer, LOOK_NS, 0);
			continue;
		}
		if (apart_start(a))
			continue;
		apart_answered(a);
		apart_free(a);
	}
}

void aparts_on_timer(void *userdata)
{
	start_waiting(userdata);
}

/* The request ends without this answer. */
static void apart_on_end(void *userdata)
{
	((struct apart *)userdata)->request = NULL;
}

enum MHD_Result answer_apart(struct request *r, enum apart_kind kind)
{
	struct apart **link = &r->serve->aparts, *a;
	unsigned waiting = 0;

	for (; *link; link = &(*link)->next)
		waiting += !(*link)->pid;
	a = waiting < WAITING_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return answer_error(r, 503, "kindlingd is busy, try again");
	*a = (struct apart){ .serve = r->serve,
			     .request = r,
			     .kind = kind,
			     .begin_mono_ns = clock_mono_ns(),
			     .out_fd = -1,
			     .pidfd = -1 };
	*link = a;
	r->on_end = apart_on_end;
	r->end_userdata = a;
	serve_suspend(r);
	start_waiting(r->serve);
	return MHD_YES;
}

void aparts_free(struct serve *s)
{
	while (s->aparts) {
		struct apart *a = s->aparts;

		if (a->pid > 0) {
			(void)kill(a->pid, SIGKILL);
			(void)waitpid(a->pid, NULL,
				      WNOHANG); /* else init reaps it after the daemon's end */
		}
		apart_free(a);
	}
}
