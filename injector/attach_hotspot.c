/*
 * The attach handshake of HotSpot, JDK 8 to 28: a Unix socket /tmp/.java_pidN that the JVM makes when
 * it finds .attach_pidN and gets SIGQUIT. Files are reached through O_PATH descriptors of the
 * target's root and working directory and sockets through /proc/self/fd, so no namespace is entered.
 *
 * .attach_pidN stays until the socket has answered or no SIGQUIT is pending any more: a JVM that
 * takes the signal later and finds no file prints a thread dump into the application's output.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "daemon/core/clock.h"

static int remaining_ms(const struct inject *in)
{
	uint64_t now = clock_mono_ns();

	return now >= in->deadline_mono_ns ? 0 : (int)((in->deadline_mono_ns - now) / NS_PER_MS) + 1;
}

static void pause_ms(int ms)
{
	struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

/* ---- .attach_pid ------------------------------------------------------------------------------ */

static bool sigquit_pending(const struct inject *in)
{
	char status[16384];
	uint64_t bit = 1ull << (SIGQUIT - 1);

	if (!inject_alive(in) || proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return false;
	return (proc_signal_mask(status, "ShdPnd:") | proc_signal_mask(status, "SigPnd:")) & bit;
}

void attach_forget(struct inject *in)
{
	if (in->attach_dfd < 0)
		return;
	if (files_as_target(in) == 0)
		(void)unlinkat(in->attach_dfd, in->attach_file, 0);
	files_as_root();
	in->attach_dfd = fd_close(in->attach_dfd);
}

/* The attempt failed: wait for the signal to be taken, and a little longer for the file to be read. */
static void attach_give_up(struct inject *in)
{
	for (int i = 0; i < 200 && sigquit_pending(in); i++)
		pause_ms(10);
	if (sigquit_pending(in))
		in->attach_dfd = fd_close(in->attach_dfd); /* stopped or frozen: the file must stay */
	pause_ms(50);
	attach_forget(in);
}

static int make_attach_file(struct inject *in)
{
	CLEANUP(fd_closep) int tmp = -1, fd = -1;
	int r = files_as_target(in);

	snprintf(in->attach_file, sizeof(in->attach_file), ".attach_pid%d", in->ns_pid);
	if (r == 0) {
		/* the JVM looks into its working directory first, then into /tmp */
		tmp = files_open(in, in->root_dfd, "tmp", O_PATH | O_DIRECTORY, 0);
		fd = openat(in->cwd_dfd, in->attach_file, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
			    0660);
		if (fd >= 0 || errno == EEXIST) {
			in->attach_dfd = fcntl(in->cwd_dfd, F_DUPFD_CLOEXEC, 3);
		} else if (tmp >= 0) {
			fd = openat(tmp, in->attach_file,
				    O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0660);
			if (fd >= 0 || errno == EEXIST)
				in->attach_dfd = TAKE_FD(tmp);
		}
		r = in->attach_dfd < 0 ? -errno : 0;
	}
	files_as_root();
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT,
				 "neither its working directory nor /tmp can be written: ");
	return 0;
}

/* ---- the socket ------------------------------------------------------------------------------- */

/* -ENOENT = not there yet, -ECONNREFUSED = a stale one. */
static int connect_socket(const struct inject *in, int *ret)
{
	CLEANUP(fd_closep) int file = -1, s = -1;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t len = sizeof(peer);
	char path[48];
	struct stat st;
	int r = 0;

	snprintf(path, sizeof(path), "tmp/.java_pid%d", in->ns_pid);
	file = files_open(in, in->root_dfd, path, O_PATH | O_NOFOLLOW, 0);
	if (file < 0)
		return file;
	if (fstat(file, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -EPROTO;
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", file);
	/* JDK 8 refuses a root client of another uid; the JVM compares euid and egid */
	if (syscall(SYS_setresgid, -1, in->gid, -1) < 0 || syscall(SYS_setresuid, -1, in->uid, -1) < 0)
		r = -errno;
	else if (connect(s, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		r = -errno;
	if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0)
		return -EPERM;
	if (r < 0)
		return r;
	/* somebody else may listen under that name: a shared /tmp, or a trap */
	if (getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != in->pid)
		return -EPROTO;
	*ret = TAKE_FD(s);
	return 0;
}

static int send_sigquit(const struct inject *in)
{
	char status[16384];

	/* looked at again at the last moment: the handler must be there */
	if (!inject_alive(in) || proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (!(proc_signal_mask(status, "SigCgt:") & 1ull << (SIGQUIT - 1)))
		return fault_set(in->fault, EAGAIN, FAULT_SIGNAL, "it does not catch SIGQUIT");
	if (syscall(SYS_pidfd_send_signal, in->pidfd, SIGQUIT, NULL, 0) < 0)
		return fault_set(in->fault, errno, FAULT_SIGNAL, "send SIGQUIT: ");
	return 0;
}

int attach_connect(struct inject *in, int *ret_socket)
{
	int r = connect_socket(in, ret_socket);

	if (r == 0)
		return 0;
	if (r != -ENOENT && r != -ECONNREFUSED && r != -EPROTO)
		return fault_set(in->fault, -r, FAULT_SOCKET, "connect to its attach socket: ");
	r = make_attach_file(in);
	if (r == 0)
		r = send_sigquit(in);
	if (r < 0) {
		attach_forget(in);
		return r;
	}
	do {
		pause_ms(remaining_ms(in) > 1000 ? 2 : 10);
		r = connect_socket(in, ret_socket);
		if (r == 0) {
			attach_forget(in);
			return 0;
		}
	} while (remaining_ms(in) > 0 && inject_alive(in));
	attach_give_up(in);
	return fault_set(in->fault, ETIMEDOUT, FAULT_SOCKET,
			 "the JVM opened no attach socket in time (last: %s)", strerror(-r));
}

static int wait_for(const struct inject *in, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, remaining_ms(in)) > 0 ? 0 : -ETIMEDOUT;
}

static int send_all(const struct inject *in, int socket, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = send(socket, buf, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0 && wait_for(in, socket, POLLOUT) < 0)
			return -ETIMEDOUT;
		if (n > 0) {
			buf += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int attach_command(const struct inject *in, int socket, const char *const words[4], char *reply,
		   size_t size)
{
	char request[4096];
	size_t len = 0, have = 0;
	int r;

	/* protocol 1: its number, the command and three arguments, each NUL-terminated */
	len += (size_t)snprintf(request, sizeof(request), "1") + 1;
	for (int i = 0; i < 4; i++) {
		const char *word = words[i] ? words[i] : "";
		size_t n = strlen(word) + 1;

		if (n > sizeof(request) - len)
			return fault_set(in->fault, E2BIG, FAULT_ATTACH, "the command is too long");
		memcpy(request + len, word, n);
		len += n;
	}
	r = send_all(in, socket, request, len);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_ATTACH, "send the command: ");
	while (have < size - 1) {
		ssize_t n = recv(socket, reply + have, size - 1 - have, 0);

		if (n == 0)
			break;
		if (n < 0 && errno != EAGAIN)
			return fault_set(in->fault, errno, FAULT_ATTACH, "read the JVM's answer: ");
		if (n < 0 && wait_for(in, socket, POLLIN) < 0)
			return fault_set(in->fault, ETIMEDOUT, FAULT_ATTACH, "the JVM did not answer in time");
		if (n > 0)
			have += (size_t)n;
	}
	reply[have] = '\0';
	return 0;
}
