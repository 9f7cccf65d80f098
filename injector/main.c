/*
 * kindling-inject: one target, one attempt, then exit. Started by the daemon with a result socket
 * (result.h), or by a person as a jattach that cannot kill:
 *
 *   kindling-inject PID load LIBRARY [OPTIONS]
 *   kindling-inject PID jcmd COMMAND...
 *   kindling-inject PID properties | threaddump
 *   kindling-inject PID check [json]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "daemon/core/clock.h"
#include "injector/inject.h"
#include "injector/result.h"
#include "proto/wire.h"

#define REPLY_MAX	    (1u << 20)
#define DEADLINE_MS_DEFAULT 10000
#define PIPE_BYTES_DEFAULT  (1u << 20)
#define AFTER_DEADLINE_S    4 /* to take away what was placed */
#define DEADLINE_MS_MAX	    3600000
#define GONE_TURNS	    25 /* of 2 to 20 ms, in which an agent that was quicker speaks */

struct arguments {
	int result_fd; /* -1 = a person started us */
	uint64_t deadline_ms;
	size_t pipe_bytes;
	bool quiet;
	bool may_cover;
	const char *library;
};

static const char usage[] =
	"Usage: kindling-inject [--deadline SECONDS] PID COMMAND [ARGUMENT...]\n"
	"\n"
	"Talks to a HotSpot JVM of any container through its attach socket. Sends SIGQUIT only to a\n"
	"process that catches it, never waits for ever, and leaves no file behind.\n"
	"\n"
	"Commands:\n"
	"  load LIBRARY [OPTIONS]   load a JVMTI agent; the path is as the JVM sees it\n"
	"  jcmd COMMAND [ARG...]    a diagnostic command, e.g. jcmd VM.version\n"
	"  properties               the JVM's system properties\n"
	"  threaddump               stacks of all threads\n"
	"  check [json] [read-seccomp] [over_tmp=1]\n"
	"                           could an agent be loaded? Sends and leaves nothing.\n"
	"                           read-seccomp stops a sleeping thread for some 50 us, to read\n"
	"                           its filter; over_tmp=1: a tmpfs may be laid over its /tmp\n"
	"\n"
	"Exit status: 0 done, 1 failed (the reason is printed), 2 wrong usage. Of check: 0 yes, 1 no,\n"
	"2 it could not be told.\n";

/* The last resort against a file system of the target's that never answers. */
static void set_deadline(struct inject *in, uint64_t ms)
{
	in->deadline_mono_ns = clock_mono_ns() + ms * NS_PER_MS;
	(void)alarm((unsigned)(ms / 1000) + AFTER_DEADLINE_S);
}

static int open_target(struct inject *in)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", in->pid);
	/* the pidfd first: everything behind it is checked against this process */
	in->pidfd = (int)syscall(SYS_pidfd_open, in->pid, 0);
	if (in->pidfd < 0)
		return fault_set(in->fault, errno, FAULT_IDENTITY, "process %d: ", in->pid);
	in->proc_dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (in->proc_dfd < 0)
		return fault_set(in->fault, errno, FAULT_IDENTITY, "open %s: ", path);
	in->root_dfd = openat(in->proc_dfd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->root_dfd < 0)
		return fault_set(in->fault, errno, FAULT_NAMESPACE,
				 "open the root of process %d: ", in->pid);
	in->mnt_ns_fd = openat(in->proc_dfd, "ns/mnt", O_RDONLY | O_CLOEXEC);
	in->cgroup_dfd = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int prepare(struct inject *in)
{
	int r = open_target(in);

	if (r == 0)
		r = preflight(in);
	if (r == 0 && !inject_alive(in))
		r = fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	return r;
}

/* ---- for the daemon ------------------------------------------------------------------------- */

/* The START frame on stdin goes into control before the library is loaded. */
static int forward_start(struct inject *in, int control_fd)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = read(STDIN_FILENO, frame, sizeof(frame));

	if (n <= 0 || write(control_fd, frame, (size_t)n) != n)
		return fault_set(in->fault, EIO, FAULT_INTERNAL, "no START frame on stdin");
	return 0;
}

static int load(struct inject *in, const struct placement *p)
{
	static char reply[REPLY_MAX];
	CLEANUP(fd_closep) int socket = -1;
	char library[192], options[320];
	const char *words[4] = { "load", library, "true", options };
	int r;

	snprintf(library, sizeof(library), "%s/%s", p->dir, p->library);
	snprintf(options, sizeof(options), "events=%s/%s,control=%s/%s", p->dir, p->events, p->dir,
		 p->control);
	r = attach_connect(in, &socket);
	if (r == 0)
		r = attach_command(in, socket, words, reply, sizeof(reply));
	return r < 0 ? r : reply_check_load(reply, in->fault);
}

/* A cleaner of /tmp took the names away before the agent had opened them. */
static bool names_are_gone(const struct placement *p)
{
	struct stat st;

	return fstat(p->events_fd, &st) == 0 && st.st_nlink == 0;
}

/* Its HELLO proves that the agent lives and has opened both FIFOs. It is left in the pipe. */
static int wait_for_hello(struct inject *in, const struct placement *p)
{
	struct pollfd fd = { .fd = p->events_fd, .events = POLLIN };

	for (int gone = 0; inject_remaining_ms(in) > 0;) {
		if (poll(&fd, 1, 20) > 0 && fd.revents & POLLIN)
			return 0;
		if (!inject_alive(in))
			return fault_set(in->fault, ESRCH, FAULT_HELLO,
					 "the process ended while it was attached to");
		if (names_are_gone(p) && ++gone > GONE_TURNS)
			return fault_set(in->fault, EAGAIN, FAULT_HELLO,
					 "%s was taken away while the agent was loaded", p->dir);
		if (fd.revents & POLLHUP) /* a FIFO whose writer has closed, poll(2): do not spin */
			inject_pause_ms(2);
	}
	return fault_set(in->fault, ETIMEDOUT, FAULT_HELLO,
			 "the agent was loaded but did not speak in time");
}

static void answer(int result_fd, const struct inject_result *result, const int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)result, sizeof(*result) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fds) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	}
	(void)sendmsg(result_fd, &msg, MSG_NOSIGNAL);
}

static int inject_for_daemon(struct inject *in, const struct arguments *args)
{
	CLEANUP(fd_closep) int library_fd = open(args->library, O_RDONLY | O_CLOEXEC);
	struct placement p = PLACEMENT_NULL;
	struct inject_result result = { 0 };
	int r;

	in->fault = &result.fault;
	in->loads = true;
	in->may_cover = args->may_cover;
	if (library_fd < 0)
		r = fault_set(in->fault, errno, FAULT_PLACEMENT, "open %s: ", args->library);
	else
		r = prepare(in);
	if (r == 0)
		r = place(in, library_fd, args->quiet, args->pipe_bytes, &p);
	if (r == 0)
		r = forward_start(in, p.control_fd);
	if (r == 0)
		r = load(in, &p);
	if (r == 0)
		r = wait_for_hello(in, &p);
	snprintf(result.library, sizeof(result.library), "%.40s/%.80s", p.dir, p.library);
	result.strategy = p.strategy;
	/* loaded or not, no name stays: the agent has both FIFOs open, the JVM has the library
	 * mapped */
	place_remove(in, &p);
	over_take_away(in);
	if (r == 0)
		attach_mend_socket(in);
	answer(args->result_fd, &result, r == 0 ? (int[2]){ p.events_fd, p.control_fd } : NULL);
	return r < 0 ? 1 : 0;
}

static int cleanup(struct inject *in)
{
	struct fault f = { 0 };

	in->fault = &f;
	/* a stopped process is no reason to leave its files */
	if (open_target(in) == 0 && (preflight_identity(in) == 0 || f.code == EAGAIN) &&
	    inject_alive(in)) {
		f = (struct fault){ 0 };
		if (over_find(in) == 0)
			place_cleanup(in);
		attach_file_cleanup(in);
		over_take_away(in);
	}
	return 0;
}

/* ---- for people ----------------------------------------------------------------------------- */

static int print_reply(const char *reply)
{
	const char *text = strchr(reply, '\n');
	long code = strtol(reply, NULL, 10);

	fputs(text ? text + 1 : reply, stdout);
	return code == 0 ? 0 : 1;
}

static int join(char *dst, size_t size, char **words)
{
	size_t len = 0;

	dst[0] = '\0';
	for (; *words; words++) {
		len += (size_t)snprintf(dst + len, size - len, "%s%s", len ? " " : "", *words);
		if (len >= size)
			return -E2BIG;
	}
	return 0;
}

static int check(struct inject *in, char **argv)
{
	struct fault f = { 0 };
	bool json = false;

	for (char **word = argv + 1; *word; word++) {
		json |= strcmp(*word, "json") == 0;
		in->reads_seccomp |= strcmp(*word, "read-seccomp") == 0;
		in->may_cover |= strcmp(*word, "over_tmp=1") == 0;
	}
	in->fault = &f;
	in->loads = in->looks = true;
	if (open_target(in) < 0) {
		check_say_unseen(json, f.step == FAULT_NAMESPACE ? "access" : "process", &f);
		if (f.step != FAULT_NAMESPACE || in->proc_dfd < 0)
			return 1;
	}
	return check_all(in, json);
}

static int command_for_person(struct inject *in, char **argv)
{
	static char reply[REPLY_MAX];
	CLEANUP(fd_closep) int socket = -1;
	const char *words[4] = { argv[0], NULL, NULL, NULL };
	struct fault f = { 0 };
	char joined[2048];
	int r;

	in->fault = &f;
	if (strcmp(argv[0], "check") == 0)
		return check(in, argv);
	if (strcmp(argv[0], "load") == 0 && argv[1]) {
		in->loads = true;
		words[1] = argv[1];
		words[2] = argv[1][0] == '/' ? "true" : "false";
		words[3] = argv[2];
	} else if (strcmp(argv[0], "jcmd") == 0 && argv[1]) {
		if (join(joined, sizeof(joined), argv + 1) < 0) {
			fprintf(stderr, "kindling-inject: the command is longer than %zu bytes\n",
				sizeof(joined));
			return 2;
		}
		words[1] = joined;
	} else if (strcmp(argv[0], "properties") != 0 && strcmp(argv[0], "threaddump") != 0) {
		fputs(usage, stderr);
		return 2;
	}
	r = prepare(in);
	if (r == 0)
		r = attach_connect(in, &socket);
	if (r == 0)
		r = attach_command(in, socket, words, reply, sizeof(reply));
	if (r == 0 && strcmp(argv[0], "load") == 0)
		r = reply_check_load(reply, &f);
	if (r < 0) {
		fprintf(stderr, "kindling-inject: %s: %s\n", fault_step_name(f.step), f.what);
		return 1;
	}
	return print_reply(reply);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool number(const char *s, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && !errno;
}

static bool parse_settings(struct arguments *args, char **argv)
{
	uint64_t n;

	for (; *argv; argv++) {
		if (strcmp(*argv, "quiet=0") == 0)
			args->quiet = false;
		else if (strcmp(*argv, "over_tmp=1") == 0)
			args->may_cover = true;
		else if (strncmp(*argv, "deadline_ms=", 12) == 0 && number(*argv + 12, &n) &&
			 n <= DEADLINE_MS_MAX)
			args->deadline_ms = n;
		else if (strncmp(*argv, "pipe=", 5) == 0 && number(*argv + 5, &n) && n <= 1u << 30)
			args->pipe_bytes = n;
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct arguments args = { -1, DEADLINE_MS_DEFAULT, PIPE_BYTES_DEFAULT, true, false, NULL };
	struct inject in = INJECT_NULL;
	uint64_t n;
	int at = 1;

	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--help") == 0) {
			fputs(usage, stdout);
			return 0;
		}
		if (strcmp(argv[at], "--version") == 0) {
			puts("kindling-inject " KINDLING_VERSION);
			return 0;
		}
		if (at + 1 >= argc || !number(argv[at + 1], &n))
			break;
		if (strcmp(argv[at], "--result-fd") == 0)
			args.result_fd = (int)n;
		else if (strcmp(argv[at], "--deadline") == 0 && n > 0 &&
			 n <= DEADLINE_MS_MAX / 1000)
			args.deadline_ms = n * 1000;
		else
			break;
	}
	if (at + 1 >= argc || !number(argv[at], &n) || n == 0 || n > INT32_MAX) {
		fputs(usage, stderr);
		return 2;
	}
	in.pid = (pid_t)n;
	at++;
	signal(SIGPIPE, SIG_IGN);
	set_deadline(&in, args.deadline_ms);
	if (args.result_fd < 0)
		return command_for_person(&in, argv + at);

	/* PID START_TIME attach LIBRARY settings..., or PID START_TIME cleanup */
	if (at + 1 >= argc || !number(argv[at], &in.start_time))
		return 2;
	if (strcmp(argv[at + 1], "cleanup") == 0) {
		return cleanup(&in);
	}
	if (at + 2 >= argc || strcmp(argv[at + 1], "attach") != 0 ||
	    !parse_settings(&args, argv + at + 3))
		return 2;
	args.library = argv[at + 2];
	set_deadline(&in, args.deadline_ms);
	return inject_for_daemon(&in, &args);
}
