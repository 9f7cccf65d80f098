/*
 * The file .attach_pidN in /tmp or in the JVM's working directory makes HotSpot take SIGQUIT as a
 * request to open its attach socket. A JVM that finds no such file, or one of another user, prints
 * a thread dump into the application's output instead. Therefore the file stays until the socket
 * has answered, or until no SIGQUIT is pending and the JVM has had time to look for the file.
 *
 * The file names the process that is attached to, and is locked while the attach runs. A later
 * attach recognises by that a file that was left because the JVM was stopped or the injector was
 * killed.
 */
#include "injector/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"

#define STALE_AGE_S   5 /* another tool's file that is younger may still be in use */
#define GIVE_UP_TURNS 200
#define GIVE_UP_MS    10
#define ENTRIES_MAX   1000
#define BUSY_NS	      (2 * NS_PER_S) /* longer than an attach by another tool takes */
#define OTHER_UID_NS  (500 * NS_PER_MS) /* wait for a file of a uid that the JVM does not accept */
#define JVM_TURNS     50 /* pauses, in which the JVM looks for the file */

static bool has_pending_sigquit(const char *status)
{
	uint64_t bit = 1ull << (SIGQUIT - 1);

	return (proc_signal_mask(status, "ShdPnd:") | proc_signal_mask(status, "SigPnd:")) & bit;
}

bool attach_sigquit_pending(const struct inject *in)
{
	char status[16384];

	if (!inject_alive(in) || proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return false;
	return has_pending_sigquit(status);
}

/* Is the target stopped or frozen? Then its signal handler may have run, but the thread that looks
 * for the file cannot run. */
static bool target_is_stopped(const struct inject *in)
{
	char stat[1024];
	char state;

	if (proc_read(in->proc_dfd, "stat", stat, sizeof(stat)) <= 0)
		return false;
	state = proc_state(stat);
	return state == 'T' || state == 't' || cgroup_is_frozen(in);
}

/* The JVM's handler only wakes the thread that looks for the file. Waits until there is a socket,
 * which proves that the thread has looked; half a second at most, for a busy machine. */
static void attach_file_wait_for_jvm(const struct inject *in)
{
	for (int i = 0; i < JVM_TURNS && !attach_has_socket(in); i++)
		inject_pause_ms(GIVE_UP_MS);
}

/* ---- whose it is ---------------------------------------------------------------------------- */

#define MARK_BYTES 64

static void attach_file_mark(const struct inject *in, char *buf)
{
	memset(buf, 0, MARK_BYTES);
	snprintf(buf, MARK_BYTES, "kindling %d %llu\n", in->pid,
		 (unsigned long long)in->start_time);
}

/* Is the process that the file names still running? */
static bool names_live_process(const struct inject *in, const char *text)
{
	unsigned long long start_time;
	char path[32], stat[1024];
	int pid;

	if (sscanf(text, "kindling %d %llu", &pid, &start_time) != 2)
		return true; /* unknown, so the file stays */
	snprintf(path, sizeof(path), "../%d/stat", pid);
	return proc_read(in->proc_dfd, path, stat, sizeof(stat)) > 0 &&
	       proc_start_time(stat) == start_time;
}

/* Was the file left by an earlier attach of kindling, to this process or to one that has ended (in
 * containers most JVMs have pid 1)? Then no process holds its lock. A file for a running JVM of
 * another pod that shares the directory stays. */
static bool is_own_remnant(const struct inject *in, int fd)
{
	char wanted[MARK_BYTES], text[MARK_BYTES] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	attach_file_mark(in, wanted);
	return n > 0 && (strcmp(text, wanted) == 0 || !names_live_process(in, text)) &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* An empty file belongs to another tool, or to an older version of kindling; no attach uses it for
 * longer than STALE_AGE_S. */
static bool is_stale(const struct stat *st)
{
	return st->st_size == 0 &&
	       (uint64_t)st->st_ctime + STALE_AGE_S < clock_real_ns() / NS_PER_S;
}

/* The target's working directory; -ENOENT = it is a hsperfdata directory, which the target leaves
 * before it looks for the file (see attach_file_make()). */
static int open_cwd(const struct inject *in)
{
	CLEANUP(fd_closep) int fd = openat(in->proc_dfd, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char link[32], path[PATH_MAX];
	const char *base;
	ssize_t n;

	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	return base && strncmp(base, "/hsperfdata_", 12) == 0 ? -ENOENT : TAKE_FD(fd);
}

/* Opens an existing file of the target. For writing, though only a lock is wanted: where other
 * machines see locks (NFS, CIFS), an exclusive one needs that, flock(2). */
static int attach_file_open(const struct inject *in, int dfd)
{
	int fd = files_open_seen(dfd, in->attach_file, O_RDWR, S_IFREG, in->uid);

	if (fd != -EACCES && fd != -EROFS)
		return fd;
	return files_open_seen(dfd, in->attach_file, O_RDONLY, S_IFREG, in->uid);
}

/* ---- making it ------------------------------------------------------------------------------ */

/* Removes or takes over a file that a killed attach left behind. Returns an fd, -EEXIST = the
 * file is in use, -EAGAIN = it is gone, try again. */
static int attach_file_take_over(const struct inject *in, int dfd)
{
	CLEANUP(fd_closep) int fd = attach_file_open(in, dfd);
	struct stat st;

	if (fd == -ENOENT)
		return -EAGAIN;
	if (fd >= 0 && is_own_remnant(in, fd))
		return TAKE_FD(fd);
	if (fstatat(dfd, in->attach_file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_stale(&st))
		return -EEXIST;
	/* in a sticky directory only root may remove a file of another owner */
	files_as_root();
	(void)unlinkat(dfd, in->attach_file, 0);
	return files_as_target(in) < 0 ? -EPERM : -EAGAIN;
}

/*
 * Should this attach stop waiting for the existing file to go? Another attach ends soon. A file of
 * a user whose attaches the JVM does not accept belongs at best to the JVM of another pod that
 * shares the directory, or somebody put it there to obstruct attaches, so it gets less time.
 */
static bool has_waited_enough(const struct inject *in, int dfd, uint64_t begin_mono_ns)
{
	uint64_t waited_ns = clock_mono_ns() - begin_mono_ns;
	struct stat st;

	if (inject_remaining_ms(in) == 0 || waited_ns > BUSY_NS)
		return true;
	return waited_ns > OTHER_UID_NS &&
	       fstatat(dfd, in->attach_file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid != in->uid && st.st_uid != in->ns_root_uid && st.st_uid != 0;
}

static int attach_file_busy(const struct inject *in, int dfd)
{
	struct stat st = { .st_uid = in->uid };

	(void)fstatat(dfd, in->attach_file, &st, AT_SYMLINK_NOFOLLOW);
	return fault_set(in->fault, EBUSY, FAULT_PLACEMENT,
			 "%s exists already and belongs to uid %u: another attach is under way, or "
			 "somebody put it there: ",
			 in->attach_file, st.st_uid);
}

/*
 * Creates and locks the file in @dfd. An existing file belongs to an attach in progress, by
 * kindling or another tool, to this JVM or to one in another pid namespace that shares the
 * directory. This attach waits until that one has ended, because two attaches that use one file
 * would delete each other's.
 */
static int attach_file_make_in(struct inject *in, int dfd)
{
	uint64_t begin_mono_ns = clock_mono_ns();
	char text[MARK_BYTES];
	int fd;

	attach_file_mark(in, text);
	while ((fd = openat(dfd, in->attach_file,
			    O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0660)) < 0) {
		if (errno != EEXIST)
			return -errno;
		fd = attach_file_take_over(in, dfd);
		if (fd >= 0)
			in->attach_fd = fd; /* locked; its mark stays as it is */
		if (fd >= 0 || fd == -EPERM)
			return fd < 0 ? fd : 0;
		if (has_waited_enough(in, dfd, begin_mono_ns))
			return attach_file_busy(in, dfd);
		if (fd == -EEXIST)
			inject_pause_ms(5);
	}
	/* on a full disk the file stays empty, and only its age shows whether it is in use */
	(void)flock(fd, LOCK_EX | LOCK_NB);
	(void)!pwrite(fd, text, strlen(text), 0);
	in->attach_fd = fd;
	return 0;
}

/* Removes a file from the working directory, where the JVM looks first: it would hide ours in
 * /tmp. */
static int attach_file_clear(struct inject *in, int dfd)
{
	uint64_t begin_mono_ns = clock_mono_ns();
	struct stat st;
	int fd;

	while (fstatat(dfd, in->attach_file, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		fd = attach_file_take_over(in, dfd);
		if (fd >= 0) {
			(void)unlinkat(dfd, in->attach_file, 0);
			fd_close(fd);
		} else if (has_waited_enough(in, dfd, begin_mono_ns)) {
			return attach_file_busy(in, dfd);
		} else if (fd == -EEXIST) {
			inject_pause_ms(5);
		}
	}
	return 0;
}

/*
 * The JVM looks into its working directory first, then into /tmp. The file is created in /tmp,
 * where the socket will be too, and in the working directory only if that fails. A starting JVM
 * changes to /tmp/hsperfdata_USER for a moment, to clean up there, and may handle SIGQUIT by then;
 * afterwards it would not find a file in that directory.
 */
int attach_file_make(struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in), cwd = open_cwd(in);
	int r;

	snprintf(in->attach_file, sizeof(in->attach_file), ".attach_pid%d", in->ns_pid);
	r = files_as_target(in);
	if (r == 0 && cwd >= 0)
		r = attach_file_clear(in, cwd);
	if (r == 0) {
		r = tmp < 0 ? tmp : attach_file_make_in(in, tmp);
		if (r == 0) {
			in->attach_dfd = TAKE_FD(tmp);
		} else if (r != -EBUSY) {
			r = cwd < 0 ? cwd : attach_file_make_in(in, cwd);
			if (r == 0)
				in->attach_dfd = TAKE_FD(cwd);
		}
	}
	files_as_root();
	if (r < 0)
		return fault_set(
			in->fault, -r, FAULT_PLACEMENT,
			"%s can be created neither in /tmp nor in the JVM's working directory: ",
			in->attach_file);
	return 0;
}

void attach_file_forget(struct inject *in)
{
	if (in->attach_dfd < 0)
		return;
	if (files_as_target(in) == 0)
		(void)unlinkat(in->attach_dfd, in->attach_file, 0);
	files_as_root();
	in->attach_dfd = fd_close(in->attach_dfd);
	in->attach_fd = fd_close(in->attach_fd);
}

/* May the process @pid still look for its file: is a SIGQUIT pending for it, or is it stopped? */
static bool attach_file_may_be_sought(const struct inject *in, int pid)
{
	char path[40], text[16384];

	snprintf(path, sizeof(path), "../%d/stat", pid);
	if (proc_read(in->proc_dfd, path, text, sizeof(text)) <= 0)
		return false;
	if (proc_state(text) == 'T' || proc_state(text) == 't')
		return true;
	snprintf(path, sizeof(path), "../%d/status", pid);
	return proc_read(in->proc_dfd, path, text, sizeof(text)) > 0 && has_pending_sigquit(text);
}

/* Is @name a file of kindling that a JVM may still look for? */
static bool is_awaited(const struct inject *in, int dfd, const char *name)
{
	CLEANUP(fd_closep) int fd = files_open_seen(dfd, name, O_RDONLY, S_IFREG, FILES_ANY);
	unsigned long long start_time;
	char text[MARK_BYTES] = "";
	int pid;

	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
	    sscanf(text, "kindling %d %llu", &pid, &start_time) != 2 ||
	    !names_live_process(in, text))
		return false;
	if (pid == in->pid)
		return attach_sigquit_pending(in) || target_is_stopped(in);
	return attach_file_may_be_sought(in, pid);
}

/* ---- taking it away ------------------------------------------------------------------------- */

bool attach_file_give_up(struct inject *in)
{
	for (int i = 0; i < GIVE_UP_TURNS && attach_sigquit_pending(in) && !target_is_stopped(in);
	     i++)
		inject_pause_ms(GIVE_UP_MS);
	attach_file_wait_for_jvm(in);
	if (attach_sigquit_pending(in) || target_is_stopped(in)) {
		/* the file must stay: the next attach to this process takes it over */
		in->left = true;
		in->attach_dfd = fd_close(in->attach_dfd);
		in->attach_fd = fd_close(in->attach_fd);
		return false;
	}
	attach_file_forget(in);
	return true;
}

bool attach_file_is_awaited(const struct inject *in, int dir_dfd)
{
	int copy = fcntl(dir_dfd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	bool awaited = false;
	struct dirent *e;

	for (int i = 0; dir && !awaited && i < ENTRIES_MAX && (e = readdir(dir)); i++)
		awaited = strncmp(e->d_name, ".attach_pid", 11) == 0 &&
			  is_awaited(in, dir_dfd, e->d_name);
	if (dir)
		closedir(dir);
	return awaited;
}

static bool is_remnant(const struct inject *in, int dfd)
{
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (dfd < 0)
		return false;
	fd = attach_file_open(in, dfd);
	return fd >= 0 && fstat(fd, &st) == 0 && (is_own_remnant(in, fd) || is_stale(&st));
}

void attach_file_cleanup(struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);
	CLEANUP(fd_closep) int cwd = open_cwd(in);
	int dfds[] = { tmp, cwd };

	snprintf(in->attach_file, sizeof(in->attach_file), ".attach_pid%d", in->ns_pid);
	for (size_t i = 0; i < ARRAY_SIZE(dfds); i++) {
		if (files_as_target(in) < 0)
			return;
		if (is_remnant(in, dfds[i])) {
			attach_file_wait_for_jvm(in);
			if (attach_sigquit_pending(in) || target_is_stopped(in))
				in->left = true;
			else
				(void)unlinkat(dfds[i], in->attach_file, 0);
		}
		files_as_root();
	}
}
