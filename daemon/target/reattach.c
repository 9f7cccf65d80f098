/*
 * An agent that a former daemon left behind: its FIFOs have no names any more, but are open in the
 * target, and what is open there can be opened again through /proc/PID/fd (docs/decisions/0002).
 */
#include "daemon/target/target_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/core/log.h"
#include "daemon/core/version.h"

#define FDS_MAX	     65536 /* looked at in one target */
#define VERSIONS_MAX 8 /* of agents in one target */

/*
 * The FIFO behind descriptor @name of the target. What lies there is the target's to choose, so it
 * is opened O_PATH, seen to be a FIFO of the target's, and only then opened for real.
 */
static int open_path(const struct target *t, int fd_dfd, const char *name)
{
	CLEANUP(fd_closep) int fd = openat(fd_dfd, name, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || st.st_uid != t->jvm.uid)
		return -1;
	return TAKE_FD(fd);
}

static int reopen(int path_fd, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

/* An agent's pipes, O_PATH; -1 = not seen. */
struct fifos {
	char version[VERSION_BYTES];
	int events_fd, control_fd;
};

/* The agents in a target by their versions, ours the first. */
struct agents {
	struct fifos of[VERSIONS_MAX];
	unsigned n;
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

/* @link: what a descriptor of the target's leads to. */
static void take_fifo(const struct target *t, int fd_dfd, const char *fd, const char *link,
		      struct agents *a)
{
	static const char part[] = "/kindling/";
	const char *version = NULL, *name;
	struct fifos *f;

	/* the last: /tmp itself may be a link, and the kernel prints what it leads to */
	for (const char *p = link; (p = strstr(p, part)); p++)
		version = p + sizeof(part) - 1;
	name = version ? strchr(version, '/') : NULL;
	f = name ? agent_of(a, version, (size_t)(name - version)) : NULL;
	if (!f)
		return;
	if (f->events_fd < 0 && strncmp(name, "/events-", 8) == 0)
		f->events_fd = open_path(t, fd_dfd, fd);
	else if (f->control_fd < 0 && strncmp(name, "/control-", 9) == 0)
		f->control_fd = open_path(t, fd_dfd, fd);
}

static void find_agents(const struct target *t, int fd_dfd, struct agents *a)
{
	int copy_fd = fcntl(fd_dfd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy_fd >= 0 ? fdopendir(copy_fd) : NULL;
	struct dirent *e;

	a->n = 0;
	(void)agent_of(a, KINDLING_VERSION, strlen(KINDLING_VERSION));
	for (int i = 0; dir && i < FDS_MAX && (e = readdir(dir)); i++) {
		char link[256];
		ssize_t n = readlinkat(fd_dfd, e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		take_fifo(t, fd_dfd, e->d_name, link, a);
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
 * Does somebody read from it now? A FIFO can be opened for writing without waiting only while it
 * has a reader, fifo(7); the agent itself has it open for writing alone.
 */
static bool has_reader(int events_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", events_fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0;
}

/* What the former daemon did not read may begin in the middle of a frame. */
static void discard(int events_fd)
{
	uint8_t junk[4096];

	for (int i = 0; i < 4096 && read(events_fd, junk, sizeof(junk)) > 0; i++)
		;
}

static int take_over(struct target *t, int events_path_fd, int control_fd)
{
	const struct config *c = t->priv->table->config;
	uint8_t frame[WIRE_FRAME_MAX];
	int events_fd, len;

	events_fd = reopen(events_path_fd, O_RDONLY);
	if (events_fd < 0)
		return 0;
	(void)fcntl(events_fd, F_SETPIPE_SZ, (int)c->pipe_bytes);
	discard(events_fd);
	t->priv->session = 0; /* not the former daemon's: the agent begins anew */
	len = session_frame(t, frame, c->cpu_interval_ns, false);
	if (write(control_fd, frame, (size_t)len) != len) {
		fd_close(events_fd);
		return 0;
	}
	TARGET_LOG(INFO, t, "target.reattach", "pid=%d", t->jvm.pid);
	session_open(t, events_fd, control_fd);
	return 1;
}

/* An agent of another version, or of an attach that we know nothing of, that nobody reads from: its
 * daemon was killed, and it would sleep in the target until that ends. The frame is the same in
 * every version. */
static void send_away(const struct target *t, const struct fifos *f)
{
	CLEANUP(fd_closep) int fd = -1;
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	if (f->events_fd < 0 || f->control_fd < 0 || has_reader(f->events_fd))
		return;
	fd = reopen(f->control_fd, O_WRONLY);
	wire_begin(&w, frame, WIRE_DETACH);
	len = wire_end(&w, 1);
	if (fd >= 0 && write(fd, frame, len) == (ssize_t)len)
		TARGET_LOG(INFO, t, "target.send_away", "pid=%d version=%s", t->jvm.pid,
			   f->version);
}

/*
 * Ours, if it is there: as session_reattach(). Anybody can hold two FIFOs of these names: it has to
 * say the secret of its attach, and where we know of no attach, there is nobody to talk to.
 */
static int take_over_ours(struct target *t, const struct fifos *ours, struct fault *f)
{
	const uint8_t *secret =
		secrets_find(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
	int control_fd, r;

	if (ours->events_fd < 0 || ours->control_fd < 0)
		return 0;
	if (has_reader(ours->events_fd))
		return fault_set(f, EBUSY, FAULT_AGENT,
				 "another kindlingd already profiles this JVM");
	if (!secret) {
		send_away(t, ours);
		return 0;
	}
	memcpy(t->priv->secret, secret, sizeof(t->priv->secret));
	control_fd = reopen(ours->control_fd, O_WRONLY);
	if (control_fd < 0)
		return 0;
	r = take_over(t, ours->events_fd, control_fd);
	if (r <= 0)
		fd_close(control_fd);
	return r;
}

int session_reattach(struct target *t, struct fault *f)
{
	CLEANUP(fd_closep) int dfd = -1;
	struct agents agents;
	char path[40];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/fd", t->jvm.pid);
	dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dfd < 0)
		return 0;
	find_agents(t, dfd, &agents);
	for (unsigned i = 1; i < agents.n; i++)
		send_away(t, &agents.of[i]);
	r = take_over_ours(t, &agents.of[0], f);
	close_agents(&agents);
	return r;
}
