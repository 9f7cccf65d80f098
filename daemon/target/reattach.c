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
 * Open the FIFO behind descriptor @name of the target. What lies there is the target's to choose,
 * so it is opened O_PATH, seen to be a FIFO, and only then opened for real.
 */
static int open_fifo(const struct target *t, int fd_dfd, const char *name, int flags)
{
	CLEANUP(fd_closep) int path_fd = openat(fd_dfd, name, O_PATH | O_CLOEXEC);
	char path[40];
	struct stat st;

	if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISFIFO(st.st_mode) ||
	    st.st_uid != t->jvm.uid)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

static void find_fifos(const struct target *t, int fd_dfd, int *ret_events, int *ret_control)
{
	static const char prefix[] = "/tmp/kindling/" KINDLING_VERSION "/";
	int copy_fd = fcntl(fd_dfd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy_fd >= 0 ? fdopendir(copy_fd) : NULL;
	struct dirent *e;

	for (int i = 0; dir && i < FDS_MAX && (e = readdir(dir)); i++) {
		char link[256];
		ssize_t n = readlinkat(fd_dfd, e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strncmp(link, prefix, sizeof(prefix) - 1) != 0)
			continue;
		if (*ret_events < 0 && strncmp(link + sizeof(prefix) - 1, "events-", 7) == 0)
			*ret_events = open_fifo(t, fd_dfd, e->d_name, O_RDONLY);
		else if (*ret_control < 0 && strncmp(link + sizeof(prefix) - 1, "control-", 8) == 0)
			*ret_control = open_fifo(t, fd_dfd, e->d_name, O_WRONLY);
	}
	if (dir)
		closedir(dir);
}

bool session_reattach(struct target *t)
{
	CLEANUP(fd_closep) int dfd = -1, events_fd = -1, control_fd = -1;
	uint8_t frame[WIRE_FRAME_MAX], junk[4096];
	char path[40];
	int len;

	snprintf(path, sizeof(path), "/proc/%d/fd", t->jvm.pid);
	dfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dfd < 0)
		return false;
	find_fifos(t, dfd, &events_fd, &control_fd);
	if (events_fd < 0 || control_fd < 0)
		return false;
	(void)fcntl(events_fd, F_SETPIPE_SZ, (int)t->priv->table->config->pipe_bytes);
	/* what the former daemon did not read may begin in the middle of a frame */
	for (int i = 0; i < 4096 && read(events_fd, junk, sizeof(junk)) > 0; i++)
		;
	t->priv->session = 0; /* ours, not the former one's: the agent begins anew */
	len = session_frame(t, frame, t->priv->table->config->cpu_interval_ns, false);
	if (write(control_fd, frame, (size_t)len) != len)
		return false;
	log_info("target.reattach", "pid=%d", t->jvm.pid);
	session_open(t, TAKE_FD(events_fd), TAKE_FD(control_fd));
	return true;
}
