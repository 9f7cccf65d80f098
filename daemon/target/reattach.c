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

#define FDS_MAX 65536 /* looked at in one target */

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

static void find_fifos(const struct target *t, int fd_dfd, int *ret_events, int *ret_control)
{
	/* /tmp itself may be a link: the kernel prints what it leads to */
	static const char part[] = "/kindling/" KINDLING_VERSION "/";
	int copy_fd = fcntl(fd_dfd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy_fd >= 0 ? fdopendir(copy_fd) : NULL;
	struct dirent *e;

	for (int i = 0; dir && i < FDS_MAX && (e = readdir(dir)); i++) {
		char link[256];
		ssize_t n = readlinkat(fd_dfd, e->d_name, link, sizeof(link) - 1);
		const char *name;

		if (n <= 0)
			continue;
		link[n] = '\0';
		name = strstr(link, part);
		if (!name)
			continue;
		name += sizeof(part) - 1;
		if (*ret_events < 0 && strncmp(name, "events-", 7) == 0)
			*ret_events = open_path(t, fd_dfd, e->d_name);
		else if (*ret_control < 0 && strncmp(name, "control-", 8) == 0)
			*ret_control = open_path(t, fd_dfd, e->d_name);
	}
	if (dir)
		closedir(dir);
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

static int take_over(struct target *t, int events_path_fd, int control_fd, struct fault *f)
{
	const struct config *c = t->priv->table->config;
	uint8_t frame[WIRE_FRAME_MAX];
	int events_fd, len;

	if (has_reader(events_path_fd))
		return fault_set(f, EBUSY, FAULT_AGENT,
				 "another daemon reads from the agent in it");
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
	log_info("target.reattach", "pid=%d", t->jvm.pid);
	session_open(t, events_fd, control_fd);
	return 1;
}

int session_reattach(struct target *t, struct fault *f)
{
	CLEANUP(fd_closep) int dfd = -1, events_fd = -1, control_path_fd = -1;
	int control_fd, r;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/fd", t->jvm.pid);
	dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dfd < 0)
		return 0;
	find_fifos(t, dfd, &events_fd, &control_path_fd);
	if (events_fd < 0 || control_path_fd < 0)
		return 0;
	control_fd = reopen(control_path_fd, O_WRONLY);
	if (control_fd < 0)
		return 0;
	r = take_over(t, events_fd, control_fd, f);
	if (r <= 0)
		fd_close(control_fd);
	return r;
}
