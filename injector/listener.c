/*
 * A JVM's attach listener has to end before the name of its socket is removed. Otherwise HotSpot
 * notices at the next SIGQUIT that the name is gone, ends its listener and looks for .attach_pid.
 * If there is none, it prints its threads, as it should, but from then on believes that it is
 * starting a listener: it never prints its threads again and cannot be attached to. The owner's
 * `kill -3` would work only once (seen on JDK 8 to 28).
 *
 * Therefore this file removes the socket's name and sends SIGQUIT while an .attach_pid exists and
 * the file system has no room for a new socket. The JVM ends its listener, fails to start another,
 * and is in the state from before the attach. A file named .java_pidN.tmp shows when that has
 * happened: the JVM deletes a file of this name before it creates its socket.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"

#define WAIT_NS	  (2 * NS_PER_S)
#define TRIES	  3
#define FILES_MAX 256

/* Uses up the inodes of @dir_dfd's file system, so that no file can be created in it. */
static void listener_fill(int dir_dfd)
{
	char name[16];
	int r = 0;

	for (int i = 0; r >= 0 && i < FILES_MAX; i++) {
		snprintf(name, sizeof(name), ".full%d", i);
		r = mknodat(dir_dfd, name, S_IFREG, 0);
		if (r < 0 && errno == EEXIST)
			r = 0;
	}
}

static int make_mark(const struct inject *in, int dir_dfd, const char *name, int *ret)
{
	int fd, r = files_as_target(in);

	if (r < 0)
		return r;
	fd = files_open(dir_dfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	files_as_root();
	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

/* Waits until the JVM has deleted the file; false = it has not done so in time. */
static bool wait_until_gone(const struct inject *in, int mark_fd)
{
	uint64_t end = clock_mono_ns() + WAIT_NS;
	struct stat st;

	while (clock_mono_ns() < end && inject_alive(in)) {
		if (fstat(mark_fd, &st) == 0 && st.st_nlink == 0)
			return true;
		inject_pause_ms(1);
	}
	return false;
}

/* Makes one attempt to end the listener; true = another attempt would be pointless or is not
 * needed. */
static bool end_once(struct inject *in, int dir_dfd)
{
	CLEANUP(fd_closep) int socket = -1, mark = -1;
	char name[32], mark_name[40];
	bool looked;

	snprintf(name, sizeof(name), ".java_pid%d", in->ns_pid);
	snprintf(mark_name, sizeof(mark_name), "%s.tmp", name);
	/* both are kept open, so that their inodes stay in use after the names are gone */
	socket = files_open(dir_dfd, name, O_PATH | O_NOFOLLOW, 0);
	if (socket < 0 || make_mark(in, dir_dfd, mark_name, &mark) < 0 || attach_file_make(in) < 0)
		return true;
	listener_fill(dir_dfd);
	if (unlinkat(dir_dfd, name, 0) < 0 || attach_send_signal(in) < 0)
		return true;
	looked = wait_until_gone(in, mark);
	if (looked) {
		inject_pause_ms(2); /* the JVM calls bind(2) next */
		attach_file_forget(in);
	} else {
		(void)attach_file_give_up(in);
	}
	return !looked || !attach_has_socket(in);
}

void attach_end_listener(struct inject *in, int dir_dfd)
{
	struct fault kept = *in->fault; /* the fault of the attach, if any */

	for (int i = 0; i < TRIES && attach_has_socket(in) && jdk_makes_sockets_again(in); i++)
		if (end_once(in, dir_dfd))
			break;
	*in->fault = kept;
}
