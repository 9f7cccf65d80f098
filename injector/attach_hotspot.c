/*
 * The attach handshake of HotSpot, JDK 8 to 28: a Unix socket /tmp/.java_pidN that the JVM makes
 * when it finds .attach_pidN and gets SIGQUIT. Files are reached through O_PATH descriptors of the
 * target's root and working directory and sockets through /proc/self/fd, so no namespace is
 * entered.
 */
#include "injector/inject.h"

#include <dirent.h>
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
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"

#define SIGNAL_AGAIN_NS (200 * NS_PER_MS)
#define PAUSE_US_MIN	200 /* most JVMs make the socket within 1 to 5 ms */
#define PAUSE_US_MAX	20000
#define RESTORE_NS	(2 * NS_PER_S)
#define THREADS_MAX	65536 /* threads of a target that are examined */

/* ---- the socket ----------------------------------------------------------------------------- */

static int open_socket_file(const struct inject *in, struct stat *st)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);
	char name[32];
	int fd;

	if (tmp < 0)
		return tmp;
	snprintf(name, sizeof(name), ".java_pid%d", in->ns_pid);
	fd = files_open(tmp, name, O_PATH | O_NOFOLLOW, 0);
	if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISSOCK(st->st_mode))) {
		fd_close(fd);
		return -EPROTO;
	}
	return fd;
}

bool attach_has_socket(const struct inject *in)
{
	struct stat st;
	CLEANUP(fd_closep) int fd = open_socket_file(in, &st);

	return fd >= 0 && st.st_uid == in->uid;
}

/* Connects to the socket file @file_fd as user @uid and group @gid. Returns a descriptor, or
 * -errno: -ECONNREFUSED = no process listens. */
static int connect_as(int file_fd, uid_t uid, gid_t gid)
{
	CLEANUP(fd_closep)
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uid_t our_uid = geteuid();
	gid_t our_gid = getegid();
	int r = 0;

	if (s < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", file_fd);
	if (syscall(SYS_setresgid, -1, gid, -1) < 0 || syscall(SYS_setresuid, -1, uid, -1) < 0)
		r = -errno;
	else if (connect(s, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		r = -errno;
	if (syscall(SYS_setresuid, -1, our_uid, -1) < 0 ||
	    syscall(SYS_setresgid, -1, our_gid, -1) < 0)
		return -ENOTRECOVERABLE;
	return r < 0 ? r : TAKE_FD(s);
}

/* Connects to the target's attach socket. 0, or -errno: -ENOENT = there is none yet, -ECONNREFUSED
 * = no process listens on it, -EPROTO = another process listens, or it is no socket, -EACCES =
 * another user owns it. */
static int connect_socket(const struct inject *in, int *ret)
{
	CLEANUP(fd_closep) int file = -1, s = -1;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	file = open_socket_file(in, &st);
	if (file < 0)
		return file;
	/* JDK 8 refuses a client that is root with another uid; every JDK compares the client's
	 * euid and egid with its own, in its own user namespace */
	s = connect_as(file, in->uid, in->gid);
	if (s < 0)
		return s;
	/* another process may listen under that name: /tmp may be shared, or it may be a trap.
	 * SO_PEERCRED gives the pid that called listen(2), or 0 if that process has ended */
	if (getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != in->pid)
		return -EPROTO;
	*ret = TAKE_FD(s);
	return 0;
}

/* ---- somebody else's socket ----------------------------------------------------------------- */

/* Does the JVM have the thread that serves an attach socket? JDK 9 and later name their threads. */
static bool listens_already(const struct inject *in)
{
	CLEANUP(fd_closep)
	int dfd = openat(in->proc_dfd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dfd >= 0 ? fdopendir(fcntl(dfd, F_DUPFD_CLOEXEC, 3)) : NULL;
	char path[300], comm[32];
	bool found = false;
	struct dirent *e;

	for (int i = 0; dir && !found && i < THREADS_MAX && (e = readdir(dir)); i++) {
		snprintf(path, sizeof(path), "%s/comm", e->d_name);
		found = proc_read(dfd, path, comm, sizeof(comm)) > 0 &&
			strcmp(comm, "Attach Listener\n") == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* As root, because in a sticky /tmp the target cannot remove a socket of another user. */
static int remove_dead_socket(struct inject *in, uid_t owner)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);
	char name[32];

	snprintf(name, sizeof(name), ".java_pid%d", in->ns_pid);
	if (tmp >= 0 && (unlinkat(tmp, name, 0) == 0 || errno == ENOENT))
		return 0;
	return fault_set(
		in->fault, tmp < 0 ? -tmp : errno, FAULT_SOCKET,
		"remove /tmp/.java_pid%d, which a dead process of uid %u left where its attach socket belongs: ",
		in->ns_pid, owner);
}

/* Connects as the socket's owner to find out whether a process listens: the target may not connect
 * to it, and the JVM that created it may have ended, because pids are reused. Returns -ECONNREFUSED
 * if nobody listens, -EPROTO if a process does, or another -errno. */
static int connect_as_owner(int file_fd, const struct stat *st)
{
	CLEANUP(fd_closep) int s = connect_as(file_fd, st->st_uid, st->st_gid);

	return s < 0 && s != -EAGAIN ? s : -EPROTO;
}

/* @why: error of the attempt to connect; not -ECONNREFUSED. */
static int refuse_foreign_owner(struct inject *in, const struct stat *st, int why)
{
	if (why == -EPROTO)
		return fault_set(
			in->fault, EADDRINUSE, FAULT_SOCKET,
			"another process, of uid %u, uses its attach socket's name, .java_pid%d: two pods probably share this /tmp",
			st->st_uid, in->ns_pid);
	return fault_set(
		in->fault, EACCES, FAULT_SOCKET,
		"/tmp/.java_pid%d, the name of its attach socket, belongs to uid %u: remove it if that process is dead",
		in->ns_pid, st->st_uid);
}

static int check_foreign_owner(struct inject *in, int file_fd, const struct stat *st, int why)
{
	if (why == -EACCES)
		why = connect_as_owner(file_fd, st);
	return why == -ECONNREFUSED ? remove_dead_socket(in, st->st_uid)
				    : refuse_foreign_owner(in, st, why);
}

static int refuse_no_socket(struct inject *in, uid_t owner)
{
	return fault_set(
		in->fault, EEXIST, FAULT_SOCKET,
		"/tmp/.java_pid%d, where its attach socket belongs, is no socket but a file of uid %u: remove it",
		in->ns_pid, owner);
}

int attach_check_name(struct inject *in)
{
	struct stat st = { 0 };
	CLEANUP(fd_closep) int fd = -1;
	int r;

	if (!in->only_checks)
		return 0;
	fd = in->root_dfd < 0 ? -EACCES : open_socket_file(in, &st);
	if (fd == -ENOENT || (fd >= 0 && st.st_uid == in->uid))
		return 0;
	if (fd == -EPROTO)
		return refuse_no_socket(in, st.st_uid);
	if (fd < 0)
		return fault_set(in->fault, EACCES, FAULT_SOCKET,
				 "the JVM's /tmp cannot be read: ");
	r = connect_as_owner(fd, &st);
	if (r != -ECONNREFUSED)
		return refuse_foreign_owner(in, &st, r);
	in->found =
		"a dead process of another user left a socket with the name of its attach socket; an attach removes it";
	return 0;
}

/*
 * Two JVMs that share a /tmp and have the same pid in their namespaces use the same name for their
 * attach sockets, and the one that opened its socket last has the name. The other JVM still
 * listens, without a name, and would answer SIGQUIT with a thread dump.
 */
static int check_foreign_socket(struct inject *in, int why)
{
	struct stat st = { 0 };
	CLEANUP(fd_closep) int fd = open_socket_file(in, &st);

	if (fd == -ENOENT)
		return 0;
	if (fd == -EPROTO)
		return refuse_no_socket(in, st.st_uid);
	if (fd >= 0 && st.st_uid != in->uid)
		return check_foreign_owner(in, fd, &st, why);
	if (fd < 0 || why == -EACCES)
		return fault_set(in->fault, fd < 0 ? -fd : -why, FAULT_SOCKET,
				 "cannot connect to the JVM's attach socket: ");
	if (why == -EPROTO && listens_already(in))
		return fault_set(
			in->fault, EADDRINUSE, FAULT_SOCKET,
			"another process uses its attach socket's name, .java_pid%d: two pods probably share this /tmp",
			in->ns_pid);
	return 0;
}

/* ---- the signal ----------------------------------------------------------------------------- */

int attach_send_signal(struct inject *in)
{
	char status[16384];
	struct maps maps;

	/* checked again just before the signal: the process may have executed another program
	 * since */
	if (!inject_alive(in) || proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (maps_read(in->proc_dfd, &maps) < 0 || maps.runtime != RUNTIME_HOTSPOT ||
	    !(proc_signal_mask(status, "SigCgt:") & 1ull << (SIGQUIT - 1)))
		return fault_set(in->fault, EAGAIN, FAULT_SIGNAL,
				 "the JVM does not handle SIGQUIT, which an attach needs");
	/* a SIGQUIT of an earlier attach is still pending and is sufficient; a second one would
	 * print a thread dump */
	if (attach_sigquit_pending(in))
		return 0;
	if (syscall(SYS_pidfd_send_signal, in->pidfd, SIGQUIT, NULL, 0) < 0)
		return fault_set(in->fault, errno, FAULT_SIGNAL, "send SIGQUIT: ");
	return 0;
}

/* Reports that no socket appeared. A JVM that handled the signal has printed a thread dump and
 * would print another one, so that fault is permanent. */
static int report_no_socket(struct inject *in, int last)
{
	if (!inject_alive(in)) {
		attach_file_forget(in); /* no thread of the JVM can look for the file now */
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	}
	if (!attach_file_give_up(in))
		return fault_set(in->fault, ETIMEDOUT, FAULT_SOCKET,
				 "the JVM did not react to SIGQUIT in time");
	if (last == -EPROTO || last == -EAGAIN) /* the JVM listens, or its backlog is full */
		fault_set(in->fault, EADDRINUSE, FAULT_SOCKET,
			  "another process listens on its attach socket's name, .java_pid%d",
			  in->ns_pid);
	fault_set(
		in->fault, ETIMEDOUT, FAULT_SOCKET,
		"the JVM got SIGQUIT but opened no attach socket: attaching is switched off in it (last error: %s)",
		strerror(-last));
	in->fault->flags |= FAULT_PERMANENT;
	return -ETIMEDOUT;
}

/*
 * A moment after it begins to handle SIGQUIT, a starting JVM deletes any file with its socket's
 * name, as a remnant of a dead JVM. If it has already created its own socket, that loses its name;
 * the JVM notices this at the next SIGQUIT and creates another socket.
 */
static void signal_again(struct inject *in)
{
	struct fault f = { 0 }, *kept = in->fault;

	in->fault = &f;
	/* a thread that has got no CPU time since the first signal would handle both, and answer
	 * the second with a thread dump */
	if (jdk_lost_its_socket(in) && jdk_makes_sockets_again(in) &&
	    starting_signals_are_handled(in))
		(void)attach_send_signal(in);
	in->fault = kept;
}

/* Pauses for 1/32 of the time waited so far. */
static void pause_since(uint64_t begin_mono_ns)
{
	uint64_t us = (clock_mono_ns() - begin_mono_ns) / 1000 / 32;

	inject_pause_us(us < PAUSE_US_MIN   ? PAUSE_US_MIN
			: us > PAUSE_US_MAX ? PAUSE_US_MAX
					    : (int)us);
}

static int wait_for_socket(struct inject *in, int *ret_socket)
{
	uint64_t begin_mono_ns = clock_mono_ns(), again_mono_ns = begin_mono_ns + SIGNAL_AGAIN_NS;
	int r = -ETIMEDOUT;

	for (; inject_remaining_ms(in) > 0 && inject_alive(in); pause_since(begin_mono_ns)) {
		r = connect_socket(in, ret_socket);
		if (r == 0)
			return 0;
		if (r == -ENOENT && clock_mono_ns() > again_mono_ns) {
			signal_again(in);
			again_mono_ns = clock_mono_ns() + SIGNAL_AGAIN_NS;
		}
	}
	return r;
}

/* Connects to a JVM that already listens. Otherwise requests an attach socket and leaves
 * @ret_socket unchanged. */
static int connect_or_request(struct inject *in, int *ret_socket)
{
	int r = connect_socket(in, ret_socket);

	if (r == 0) {
		attach_file_cleanup(in); /* of an attach that gave up before the JVM handled its
					  * signal */
		return 0;
	}
	if (r != -ENOENT && r != -ECONNREFUSED && r != -EPROTO && r != -EACCES)
		return fault_set(in->fault, -r, FAULT_SOCKET,
				 "cannot connect to the JVM's attach socket: ");
	r = check_foreign_socket(in, r);
	if (r == 0)
		r = starting_wait(in);
	if (r == 0)
		r = attach_file_make(in);
	/* Another attach may have ended since the first attempt to connect. Its socket appeared
	 * before its file was removed, so now that the file is ours, this second attempt finds the
	 * socket. A SIGQUIT to a JVM that already listens prints a thread dump into the
	 * application's output. */
	if (r == 0 && connect_socket(in, ret_socket) == 0) {
		attach_file_forget(in);
		return 0;
	}
	if (r == 0)
		r = attach_send_signal(in);
	if (r < 0)
		attach_file_forget(in);
	return r;
}

int attach_begin(struct inject *in)
{
	CLEANUP(fd_closep) int socket = -1;

	/* attach_connect() checks whether the socket answers */
	return attach_has_socket(in) ? 0 : connect_or_request(in, &socket);
}

int attach_connect(struct inject *in, int *ret_socket)
{
	CLEANUP(fd_closep) int socket = -1;
	int r = in->attach_dfd < 0 ? connect_or_request(in, &socket) : 0;

	if (r < 0)
		return r;
	if (socket < 0) {
		r = wait_for_socket(in, &socket);
		if (r < 0)
			return report_no_socket(in, r);
		attach_file_forget(in);
	}
	*ret_socket = TAKE_FD(socket);
	return 0;
}

void attach_abandon(struct inject *in)
{
	struct fault f = { 0 }, *kept = in->fault;
	int socket;

	if (in->attach_dfd < 0)
		return;
	in->fault = &f;
	if (attach_connect(in, &socket) == 0)
		fd_close(socket);
	in->fault = kept;
}

/* A starting JVM may delete its socket's name even while the command runs. Unless a new socket is
 * made, the owner's next kill -3 is the last one that prints threads (listener.c). */
void attach_restore_socket(struct inject *in)
{
	uint64_t soon = clock_mono_ns() + RESTORE_NS;
	struct fault f = { 0 }, *kept = in->fault;
	int socket;

	if (!jdk_lost_its_socket(in) || !jdk_makes_sockets_again(in))
		return;
	in->fault = &f;
	if (in->deadline_mono_ns > soon)
		in->deadline_mono_ns = soon;
	if (attach_connect(in, &socket) == 0)
		fd_close(socket);
	in->fault = kept;
}
