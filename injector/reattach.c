/*
 * Finds the agent of a previous daemon. Its FIFOs have no names any more, but the target has them
 * open, and open files can be opened again through /proc/PID/fd (docs/decisions/0002).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/version.h"
#include "injector/inject.h"
#include "injector/receive.h"
#include "proto/wire.h"

#define FDS_MAX	     65536 /* descriptors of a target that are examined */
#define VERSIONS_MAX 8 /* different versions of agents in one target */
#define READER_NS    NS_PER_S /* a killed daemon's receiver ends within this time */

/*
 * Opens descriptor @name of the target with O_PATH, and checks that it is a FIFO of the target. The
 * target decides what the descriptor is, so only after this check is it opened for reading or
 * writing. Returns an fd or -1.
 */
static int open_path(uid_t uid, int fd_dfd, const char *name)
{
	CLEANUP(fd_closep) int fd = openat(fd_dfd, name, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || st.st_uid != uid)
		return -1;
	return TAKE_FD(fd);
}

static int reattach_reopen(int path_fd, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

/* An agent's FIFOs, opened with O_PATH; -1 = not found. */
struct fifos {
	char version[VERSION_BYTES];
	int events_fd, control_fd;
};

/* The agents in a target, one for each version; our version comes first. */
struct agents {
	struct fifos of[VERSIONS_MAX];
	unsigned n;
	uid_t uid;
};

static struct fifos *agent_of(struct agents *a, const char *version, size_t len)
{
	struct fifos *f;

	for (unsigned i = 0; i < a->n; i++)
		if (strlen(a->of[i].version) == len && !memcmp(a->of[i].version, version, len))
			return &a->of[i];
	if (a->n == VERSIONS_MAX || !version_is(version, len))
		return NULL;
	f = &a->of[a->n++];
	*f = (struct fifos){ .events_fd = -1, .control_fd = -1 };
	memcpy(f->version, version, len);
	return f;
}

/* @fd: a descriptor of the target; @link: the path that it leads to. */
static void take_fifo(int fd_dfd, const char *fd, const char *link, struct agents *a)
{
	static const char part[] = "/kindling/";
	const char *version = NULL, *name;
	struct fifos *f;

	/* the last occurrence, because /tmp may be a symbolic link into a path that contains this
	 * word */
	for (const char *p = link; (p = strstr(p, part)); p++)
		version = p + sizeof(part) - 1;
	name = version ? strchr(version, '/') : NULL;
	f = name ? agent_of(a, version, (size_t)(name - version)) : NULL;
	if (!f)
		return;
	if (f->events_fd < 0 && strncmp(name, "/events-", 8) == 0)
		f->events_fd = open_path(a->uid, fd_dfd, fd);
	else if (f->control_fd < 0 && strncmp(name, "/control-", 9) == 0)
		f->control_fd = open_path(a->uid, fd_dfd, fd);
}

static void find_agents(int fd_dfd, struct agents *a)
{
	int copy_fd = fcntl(fd_dfd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy_fd >= 0 ? fdopendir(copy_fd) : NULL;
	struct dirent *e;

	(void)agent_of(a, KINDLING_VERSION, strlen(KINDLING_VERSION));
	for (int i = 0; dir && i < FDS_MAX && (e = readdir(dir)); i++) {
		char link[256];
		ssize_t n = readlinkat(fd_dfd, e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		take_fifo(fd_dfd, e->d_name, link, a);
	}
	if (dir)
		closedir(dir);
}

static void close_agents(struct agents *a)
{
	for (unsigned i = 0; i < a->n; i++) {
		fd_close(a->of[i].events_fd);
		fd_close(a->of[i].control_fd);
	}
}

/*
 * Does another process read from it now? A FIFO can be opened for writing without waiting only
 * while it has a reader, fifo(7); the agent itself has it open for writing only.
 */
static bool has_reader(int events_fd)
{
	CLEANUP(fd_closep) int fd = reattach_reopen(events_fd, O_WRONLY);

	return fd >= 0;
}

static bool has_both(const struct fifos *f)
{
	return f->events_fd >= 0 && f->control_fd >= 0;
}

static bool is_read_from(const struct agents *a)
{
	for (unsigned i = 0; i < a->n; i++)
		if (has_both(&a->of[i]) && has_reader(a->of[i].events_fd))
			return true;
	return false;
}

/*
 * Does a process read from one of the agents, of any version, for longer than READER_NS? The
 * receiver of a daemon that was just killed ends within that time. It must be waited for: otherwise
 * an agent of another version would stay in the target, and one of our version would not be taken
 * over at once.
 */
static bool is_read_for_long(const struct agents *a)
{
	uint64_t end = clock_mono_ns() + READER_NS;

	while (is_read_from(a)) {
		if (clock_mono_ns() > end)
			return true;
		inject_pause_ms(10);
	}
	return false;
}

/* Tells an agent without a reader to detach: its daemon was killed, and otherwise it would sleep in
 * the target until that ends. The DETACH frame is the same in every version. */
static void reattach_detach_agent(const struct fifos *f, struct receive_found *ret)
{
	CLEANUP(fd_closep) int fd = -1;
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	if (!has_both(f) || has_reader(f->events_fd))
		return;
	fd = reattach_reopen(f->control_fd, O_WRONLY);
	wire_begin(&w, frame, WIRE_DETACH);
	len = wire_end(&w, 1);
	if (fd >= 0 && write(fd, frame, len) == (ssize_t)len)
		snprintf(ret->sent_away, sizeof(ret->sent_away), "%s", f->version);
}

static int reattach_take_over(const struct fifos *ours, int *ret_events_fd, int *ret_control_fd)
{
	CLEANUP(fd_closep) int control_fd = -1;
	int events_fd;

	if (!has_both(ours))
		return 0;
	control_fd = reattach_reopen(ours->control_fd, O_WRONLY);
	if (control_fd < 0)
		return 0;
	events_fd = reattach_reopen(ours->events_fd, O_RDONLY);
	if (events_fd < 0)
		return 0;
	*ret_events_fd = events_fd;
	*ret_control_fd = TAKE_FD(control_fd);
	return 1;
}

static bool reattach_find_agents(const struct inject *in, struct agents *a)
{
	CLEANUP(fd_closep) int dfd = -1, pid_dfd = -1;
	char path[40], stat[1024];

	snprintf(path, sizeof(path), "/proc/%d", in->pid);
	pid_dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dfd = pid_dfd < 0 ? -1 : openat(pid_dfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dfd < 0 || proc_read(pid_dfd, "stat", stat, sizeof(stat)) <= 0 ||
	    proc_start_time(stat) != in->start_time)
		return false;
	find_agents(dfd, a);
	return true;
}

void reattach_find(const struct inject *in, uid_t uid, bool known, struct receive_found *ret,
		   int *ret_events_fd, int *ret_control_fd)
{
	struct agents agents = { .uid = uid };
	bool busy;

	ret->found = 0;
	if (!reattach_find_agents(in, &agents))
		return;
	busy = is_read_for_long(&agents);
	/* the daemon must know the agent's attach, because any process can hold two FIFOs of these
	 * names */
	for (unsigned i = known ? 1 : 0; i < agents.n; i++)
		reattach_detach_agent(&agents.of[i], ret);
	if (busy)
		ret->found = -EBUSY;
	else if (known)
		ret->found = reattach_take_over(&agents.of[0], ret_events_fd, ret_control_fd);
	close_agents(&agents);
}
