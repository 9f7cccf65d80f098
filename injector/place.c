/*
 * The library and the two FIFOs in /tmp/kindling/<version>/ of the target. Strategies, in order:
 *
 *   copy    a file in that directory
 *   mount   if /tmp is noexec, full or over its quota: on a tmpfs of ours (mount.c), mounted on
 *           m-<pid>-<random>/ in that directory while the library is loaded. The FIFOs are beside
 *           it: they need neither space nor the right to execute.
 *   tmpfs   if the JVM cannot write to /tmp, and so cannot create its attach socket either: a copy
 *           on a tmpfs that covers all of /tmp (cover.c), if the settings allow it; otherwise the
 *           attach is refused.
 *
 * JVMs of many users may share a /tmp (the host's, an emptyDir). Therefore directories and library
 * belong to root of the target's user namespace, the directory is sticky like /tmp itself, and the
 * FIFOs belong to the target. If that root cannot write there, everything belongs to the target. A
 * directory of any other user is not used: its owner could replace the library after kindling has
 * checked it and before the JVM loads it.
 *
 * Attempts that share the directory hold a shared lock on it; the last of them removes the library.
 *
 * A user who creates these names first, or who locks the directory, does not keep kindling out: the
 * attempt then uses a private directory (private_dir.c), if /tmp is sticky or only its owner's.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define PLACE_DIR "/tmp/" PLACE_IN_TMP
/* bytes: the library with its debug information, and the file system's own overhead */
#define SPACE_NEEDED (4u << 20)

/* ---- checks that change nothing -------------------------------------------------------------- */

/* Reports that no directory can be created; in a read-only root the JVM could not create its attach
 * socket either. */
static int report_no_directory(struct inject *in, int r)
{
	if (!in->may_cover && (r == -EROFS || r == -EACCES || r == -EPERM))
		return fault_set(
			in->fault, -r, FAULT_PLACEMENT,
			"the JVM has no writable /tmp for its attach socket, and attach.tmpfs_over_tmp is off: ");
	return fault_set(in->fault, -r, FAULT_PLACEMENT, "make " PLACE_DIR " in the target: ");
}

static int refuse_other_owner(const struct inject *in, const struct stat *st)
{
	return fault_set(
		in->fault, EPERM, FAULT_PLACEMENT,
		"other users can change /tmp/kindling in the JVM's container (uid %u, mode %o)",
		st->st_uid, st->st_mode & 07777);
}

/* Checked with the target's ids, because root could always write. */
static int may_write(const struct inject *in, int dfd)
{
	int r = files_as_target(in);

	if (r == 0 && faccessat(dfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = -errno;
	files_as_root();
	return r;
}

static const char *against_copy(int dfd)
{
	struct statvfs fs;

	if (fstatvfs(dfd, &fs) < 0)
		return NULL;
	if (fs.f_flag & ST_NOEXEC)
		return "noexec";
	return (uint64_t)fs.f_bavail * fs.f_frsize < SPACE_NEEDED ? "full" : NULL;
}

/* Is @r, of place_plan_dirs() or place_open_shared(), something that another user can cause in
 * /tmp/kindling? */
static bool place_is_taken(const struct inject *in, int r)
{
	return r == -ELOOP || r == -ENOTDIR || (r < 0 && in->fault->code);
}

/* Replaces @dfd by its subdirectory @name if that exists. */
static int place_plan_in(struct inject *in, int *dfd, const char *name)
{
	int fd = files_open(*dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	fd_close(*dfd);
	*dfd = fd;
	return files_is_private(in, fd, &st) ? 0 : refuse_other_owner(in, &st);
}

/* Opens the target's /tmp. Fails if the JVM has no attach socket and cannot create one there. */
static int place_open_tmp(const struct inject *in, int *ret_dfd)
{
	CLEANUP(fd_closep) int dfd = files_open_tmp(in);
	int r = dfd < 0 ? dfd : may_write(in, dfd);

	/* if it has a socket, it need not be able to create another */
	if (r < 0 && (dfd < 0 || !attach_has_socket(in)))
		return r;
	*ret_dfd = TAKE_FD(dfd);
	return 0;
}

/* Finds the directory in which the library will be, or the nearest one that exists. */
static int place_plan_dirs(struct inject *in, int tmp_dfd, int *ret_dfd)
{
	CLEANUP(fd_closep) int dfd = fcntl(tmp_dfd, F_DUPFD_CLOEXEC, 3);
	int r = dfd < 0 ? -errno : place_plan_in(in, &dfd, "kindling");

	if (r == 0)
		r = place_plan_in(in, &dfd, KINDLING_VERSION);
	if (place_is_taken(in, r) && private_dir_is_safe(in, tmp_dfd)) {
		*in->fault = (struct fault){ 0 };
		fd_close(dfd);
		dfd = fcntl(tmp_dfd, F_DUPFD_CLOEXEC, 3);
		r = dfd < 0 ? -errno : 0;
	}
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_dfd = TAKE_FD(dfd);
	return 0;
}

int place_plan(struct inject *in, enum inject_strategy *ret, const char **ret_why)
{
	CLEANUP(fd_closep) int tmp = -1, dfd = -1;
	int r = place_open_tmp(in, &tmp);

	if (r < 0 && r != -ENOENT && in->may_cover) {
		*ret_why = "not writable";
		*ret = INJECT_OVER;
		return 0;
	}
	if (r < 0)
		return report_no_directory(in, r);
	r = place_plan_dirs(in, tmp, &dfd);
	if (r < 0)
		return in->fault->code ? r : report_no_directory(in, r);
	*ret_why = against_copy(dfd);
	*ret = *ret_why ? INJECT_MOUNT : in->cover_fd >= 0 ? INJECT_OVER : INJECT_COPY;
	return 0;
}

int place_begin(struct inject *in, struct placement *p)
{
	enum inject_strategy strategy;
	int r = cover_begin(in);

	if (r >= 0)
		r = place_plan(in, &strategy, &p->against_copy);
	if (r < 0 || strategy != INJECT_OVER || in->cover_fd >= 0)
		return r;
	r = cover_mount(in);
	return r < 0 ? r : place_plan(in, &strategy, &p->against_copy);
}

/* ---- directories ---------------------------------------------------------------------------- */

static int place_enter(const struct inject *in, int dfd, const char *name, mode_t mode, int *ret)
{
	int fd = files_open(dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd == -ENOENT) {
		if (mkdirat(dfd, name, mode) < 0 && errno != EEXIST)
			return -errno;
		fd = files_open(dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	if (fd < 0)
		return fd;
	if (!files_is_private(in, fd, &st)) {
		fd_close(fd);
		return refuse_other_owner(in, &st);
	}
	*ret = fd;
	return 0;
}

static int place_make_dirs(const struct inject *in, mode_t mode, struct placement *p)
{
	CLEANUP(fd_closep) int dir = -1;
	int r = place_enter(in, p->tmp_dfd, "kindling", mode, &dir);

	return r < 0 ? r : place_enter(in, dir, KINDLING_VERSION, mode, &p->dir_dfd);
}

/* Takes the shared lock. false = another attempt has removed the directory or is removing it, so it
 * must be created again. */
static bool place_lock(struct placement *p)
{
	CLEANUP(fd_closep) int again = -1;
	struct stat a, b;

	p->lock_fd = files_open(p->dir_dfd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (p->lock_fd < 0)
		return true; /* unreadable: continues without the lock */
	if (flock(p->lock_fd, LOCK_SH | LOCK_NB) < 0)
		return false;
	again = files_open(p->tmp_dfd, PLACE_IN_TMP, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return again >= 0 && fstat(again, &a) == 0 && fstat(p->dir_dfd, &b) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* The FIFOs are created as the target. A directory that root has made by hand, with root's umask, is
 * like one that somebody else has taken. */
static int place_check_writable(struct inject *in, struct placement *p)
{
	int r = may_write(in, p->dir_dfd);

	if (r == 0)
		return 0;
	p->dir_dfd = fd_close(p->dir_dfd);
	p->lock_fd = fd_close(p->lock_fd);
	return fault_set(in->fault, -r, FAULT_PLACEMENT,
			 "cannot create FIFOs in %s in the JVM's container: ", p->dir);
}

static int place_open_shared(struct inject *in, struct placement *p)
{
	struct stat st;
	int r;

	for (int i = 0; i < 100; i++) {
		r = files_as_ns_root(in);
		if (r == 0)
			r = place_make_dirs(in, 01777, p);
		if (r < 0 && r != -ENOENT && !in->fault->code && in->ns_root_uid != in->uid) {
			/* root cannot write, as in a file system that squashes root or a /tmp that
			 * only the target may use: continues as the target */
			in->ns_root_uid = in->uid;
			in->ns_root_gid = in->gid;
			r = files_as_ns_root(in);
			if (r == 0)
				r = place_make_dirs(in, 0755, p);
		}
		if (r == 0 && place_lock(p)) {
			/* an earlier attempt created it as the target, so this one continues as the
			 * target */
			if (fstat(p->dir_dfd, &st) == 0 && st.st_uid == in->uid) {
				in->ns_root_uid = in->uid;
				in->ns_root_gid = in->gid;
			}
			return place_check_writable(in, p);
		}
		if (r < 0 && r != -ENOENT)
			return r;
		p->dir_dfd = fd_close(p->dir_dfd);
		p->lock_fd = fd_close(p->lock_fd);
		inject_pause_ms(5);
	}
	if (r == 0)
		r = fault_set(in->fault, EBUSY, FAULT_PLACEMENT,
			      "another process holds a lock on " PLACE_DIR
			      " in the JVM's container: ");
	return r;
}

/* In a private directory, in which everything belongs to the target. */
static int place_open_private(struct inject *in, struct placement *p)
{
	int r = -ENOENT;

	in->ns_root_uid = in->uid;
	in->ns_root_gid = in->gid;
	private_dir_cleanup(in);
	/* a cleanup of another attempt may remove it while it is empty */
	for (int i = 0; r == -ENOENT && i < 100; i++) {
		r = private_dir_enter(in, p);
		if (r == 0)
			r = files_as_ns_root(in);
		if (r == 0)
			r = place_make_dirs(in, 0700, p);
		if (r == 0 && place_lock(p))
			return 0;
		p->dir_dfd = fd_close(p->dir_dfd);
		p->lock_fd = fd_close(p->lock_fd);
		private_dir_leave(in, p);
		r = r ? r : -ENOENT;
	}
	return r;
}

static int place_open_dir(struct inject *in, struct placement *p)
{
	uid_t ns_root_uid = in->ns_root_uid;
	gid_t ns_root_gid = in->ns_root_gid;
	struct fault why;
	int r;

	p->tmp_dfd = files_open_tmp(in);
	if (p->tmp_dfd < 0)
		return p->tmp_dfd;
	r = place_open_shared(in, p);
	files_as_root();
	if (!place_is_taken(in, r) || !private_dir_is_safe(in, p->tmp_dfd))
		return r;
	why = *in->fault;
	*in->fault = (struct fault){ 0 };
	if (place_open_private(in, p) == 0)
		return 0;
	/* the first reason is the one that a user can do something about */
	*in->fault = why;
	in->ns_root_uid = ns_root_uid;
	in->ns_root_gid = ns_root_gid;
	return r;
}

/* ---- FIFOs ---------------------------------------------------------------------------------- */

static int make_fifo(const struct inject *in, int dfd, const char *name, int flags, int *ret)
{
	int fd;

	if (mkfifoat(dfd, name, 0600) < 0)
		return -errno;
	/* the target may have replaced the FIFO between the two calls */
	fd = files_open_seen(dfd, name, flags, S_IFIFO, in->uid);
	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

static int make_fifos(const struct inject *in, size_t pipe_bytes, uint64_t random,
		      struct placement *p)
{
	int r;

	/* the pid in the names identifies them if this attempt is killed */
	snprintf(p->events, sizeof(p->events), "events-%d-%016llx", in->pid,
		 (unsigned long long)random);
	snprintf(p->control, sizeof(p->control), "control-%d-%016llx", in->pid,
		 (unsigned long long)random);
	r = files_as_target(in);
	if (r == 0)
		r = make_fifo(in, p->dir_dfd, p->events, O_RDONLY, &p->events_fd);
	if (r == 0)
		r = make_fifo(in, p->dir_dfd, p->control, O_RDWR, &p->control_fd);
	files_as_root();
	/* root may exceed the user's limit of pipe pages; if it may not, the pipe gets the largest
	 * size that is allowed */
	for (; r == 0 && pipe_bytes > 65536; pipe_bytes /= 2)
		if (fcntl(p->events_fd, F_SETPIPE_SZ, (int)pipe_bytes) >= 0)
			break;
	if (r == 0 && pipe_bytes <= 65536)
		(void)fcntl(p->events_fd, F_SETPIPE_SZ, (int)pipe_bytes);
	return r;
}

/* ---- the library ---------------------------------------------------------------------------- */

static int place_copy(struct inject *in, const struct library *l, struct placement *p)
{
	int r = files_as_ns_root(in);

	if (r == 0)
		r = library_write(p->dir_dfd, p->library, l);
	files_as_root();
	if (r == 0)
		p->strategy = in->cover_fd >= 0 ? INJECT_OVER : INJECT_COPY;
	return r;
}

/* @p->library becomes "m-<pid>-<random>/<library>". */
static int place_mount(struct inject *in, const struct library *l, uint64_t random,
		       struct placement *p)
{
	CLEANUP(fd_closep) int point = -1, mount = -1;
	char name[40], library[64];
	int r;

	snprintf(library, sizeof(library), "%.63s", p->library);
	snprintf(name, sizeof(name), "m-%d-%016llx", in->pid, (unsigned long long)random);
	r = mount_make(l, library, &mount);
	if (r == 0)
		r = files_as_ns_root(in);
	if (r == 0 && mkdirat(p->dir_dfd, name, 0755) < 0)
		r = -errno;
	files_as_root();
	if (r < 0)
		return r;
	point = files_open(p->dir_dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	r = point < 0 ? point : mount_attach(in, mount, point);
	if (r < 0)
		return r;
	p->mount_fd = TAKE_FD(mount);
	p->strategy = INJECT_MOUNT;
	snprintf(p->library, sizeof(p->library), "%.40s/%.50s", name, library);
	return 0;
}

/* Places the library by mount if place_plan() has found an obstacle to a copy. A copy into a /tmp
 * that seemed full is still tried as a last resort. */
static int place_library(struct inject *in, const struct library *l, uint64_t random,
			 struct placement *p)
{
	const char *against = p->against_copy;
	bool noexec = against && strcmp(against, "noexec") == 0;
	int r = against ? -ENOSPC : place_copy(in, l, p), mounted;

	if (r == 0)
		return 0;
	mounted = place_mount(in, l, random, p);
	if (mounted == 0 || (against && !noexec && place_copy(in, l, p) == 0))
		return 0;
	if (noexec)
		return fault_set(
			in->fault, EACCES, FAULT_PLACEMENT,
			"/tmp in the JVM's container is noexec, and nothing can be mounted there: %s",
			strerror(-mounted));
	return fault_set(in->fault, -r, FAULT_PLACEMENT,
			 "cannot write to %s in the JVM's container (%s), nor mount there: %s",
			 p->dir, strerror(-r), strerror(-mounted));
}

/* ---- together ------------------------------------------------------------------------------- */

static int place_all(struct inject *in, const struct library *l, bool quiet, size_t pipe_bytes,
		     struct placement *p)
{
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return fault_set(in->fault, EIO, FAULT_INTERNAL,
				 "the kernel gave no random number");
	snprintf(p->dir, sizeof(p->dir), PLACE_DIR);
	snprintf(p->library, sizeof(p->library), "libkindling-%016llx%s.so",
		 (unsigned long long)l->hash, quiet ? "" : "-loud");
	r = place_open_dir(in, p);
	files_as_root();
	if (r < 0)
		return report_no_directory(in, r);
	if (p->private_dir[0])
		snprintf(p->dir, sizeof(p->dir), "/tmp/%s/" PLACE_IN_TMP, p->private_dir);
	r = place_library(in, l, random, p);
	if (r < 0)
		return r;
	r = make_fifos(in, pipe_bytes, random, p);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT,
				 "cannot create FIFOs in %s in the JVM's container: ", p->dir);
	return 0;
}

int place(struct inject *in, int library_fd, bool quiet, size_t pipe_bytes, struct placement *p)
{
	struct library l = { 0 };
	int r = library_read(library_fd, &l);

	if (r < 0) {
		r = fault_set(in->fault, -r, FAULT_PLACEMENT, "cannot read the agent's library: ");
	} else {
		mode_t old = umask(0);

		r = place_all(in, &l, quiet, pipe_bytes, p);
		(void)umask(old);
	}
	free(l.bytes);
	return r;
}
