/*
 * The library and the two FIFOs in /tmp/kindling/<version>/ of the target.
 *
 * A /tmp may be shared by JVMs of many users (the host's, an emptyDir). So the directories and the
 * library belong to the root of the target's user namespace, which nobody there can overrule, the
 * directory is sticky like /tmp itself, and the FIFOs belong to the target. Where that root may not
 * write, the target does it all. A directory that a stranger owns is refused: who owns it can put
 * another library in the place of ours between our look and the JVM's.
 *
 * Attempts that share the directory hold a shared lock on it; who is the last takes the library
 * away.
 */
#include "injector/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define PLACE_DIR "/tmp/kindling/" KINDLING_VERSION

/* ---- directories ---------------------------------------------------------------------------- */

static int enter(const struct inject *in, int dfd, const char *name, mode_t mode, int *ret)
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
		return fault_set(
			in->fault, EPERM, FAULT_PLACEMENT,
			"/tmp/kindling of the target can be changed by others (uid %u, mode %o)",
			st.st_uid, st.st_mode & 07777);
	}
	*ret = fd;
	return 0;
}

static int make_dirs(const struct inject *in, mode_t mode, int *ret)
{
	CLEANUP(fd_closep) int tmp = files_open(in->root_dfd, "tmp", O_PATH | O_DIRECTORY, 0);
	CLEANUP(fd_closep) int dir = -1;
	int r;

	if (tmp < 0)
		return tmp;
	r = enter(in, tmp, "kindling", mode, &dir);
	return r < 0 ? r : enter(in, dir, KINDLING_VERSION, mode, ret);
}

/* false = the directory was taken away meanwhile, or is being: make it again */
static bool lock(struct inject *in, struct placement *p)
{
	CLEANUP(fd_closep) int again = -1;
	struct stat a, b;

	p->lock_fd = files_open(p->dir_dfd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (p->lock_fd < 0)
		return true; /* unreadable: do without */
	if (flock(p->lock_fd, LOCK_SH | LOCK_NB) < 0)
		return false;
	again = files_open(in->root_dfd, PLACE_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return again >= 0 && fstat(again, &a) == 0 && fstat(p->dir_dfd, &b) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int open_dir(struct inject *in, struct placement *p)
{
	struct stat st;
	int r;

	for (int i = 0; i < 100; i++) {
		r = files_as_keeper(in);
		if (r == 0)
			r = make_dirs(in, 01777, &p->dir_dfd);
		if (r < 0 && r != -ENOENT && !in->fault->code && in->keeper_uid != in->uid) {
			/* a squashing file system, a /tmp of the target's own: as the target then
			 */
			in->keeper_uid = in->uid;
			in->keeper_gid = in->gid;
			r = files_as_keeper(in);
			if (r == 0)
				r = make_dirs(in, 0755, &p->dir_dfd);
		}
		if (r == 0 && lock(in, p)) {
			/* what an earlier attempt made as the target goes on as the target */
			if (fstat(p->dir_dfd, &st) == 0 && st.st_uid == in->uid) {
				in->keeper_uid = in->uid;
				in->keeper_gid = in->gid;
			}
			return 0;
		}
		if (r < 0 && r != -ENOENT)
			return r;
		p->dir_dfd = fd_close(p->dir_dfd);
		p->lock_fd = fd_close(p->lock_fd);
		inject_pause_ms(5);
	}
	return r < 0 ? r : -EBUSY;
}

/* ---- FIFOs ---------------------------------------------------------------------------------- */

static int make_fifo(const struct inject *in, int dfd, const char *name, int flags, int *ret)
{
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (mkfifoat(dfd, name, 0600) < 0)
		return -errno;
	fd = files_open(dfd, name, flags | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	/* between the two calls the target may have put something else there */
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode) || st.st_uid != in->uid)
		return -EPROTO;
	*ret = TAKE_FD(fd);
	return 0;
}

static int make_fifos(const struct inject *in, size_t pipe_bytes, struct placement *p)
{
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	/* the pid tells whose they are when this attempt is killed */
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
	/* root may go beyond the user's own limit of pipe pages; where not, the pipe stays smaller
	 */
	for (; r == 0 && pipe_bytes > 65536; pipe_bytes /= 2)
		if (fcntl(p->events_fd, F_SETPIPE_SZ, (int)pipe_bytes) >= 0)
			break;
	if (r == 0 && pipe_bytes <= 65536)
		(void)fcntl(p->events_fd, F_SETPIPE_SZ, (int)pipe_bytes);
	return r;
}

/* ---- together ------------------------------------------------------------------------------- */

static int place_all(struct inject *in, const struct library *l, bool quiet, size_t pipe_bytes,
		     struct placement *p)
{
	int r;

	snprintf(p->dir, sizeof(p->dir), PLACE_DIR);
	snprintf(p->library, sizeof(p->library), "libkindling-%016llx%s.so",
		 (unsigned long long)l->hash, quiet ? "" : "-loud");
	r = open_dir(in, p);
	files_as_root();
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT, "make %s in the target: ", p->dir);
	r = files_as_keeper(in);
	if (r == 0)
		r = library_write(p->dir_dfd, p->library, l);
	files_as_root();
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT,
				 "write %s/%s in the target: ", p->dir, p->library);
	r = make_fifos(in, pipe_bytes, p);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT,
				 "make FIFOs in %s of the target: ", p->dir);
	return 0;
}

int place(struct inject *in, int library_fd, bool quiet, size_t pipe_bytes, struct placement *ret)
{
	struct library l = { 0 };
	int r = library_read(library_fd, &l);

	if (r < 0) {
		r = fault_set(in->fault, -r, FAULT_PLACEMENT, "read the agent's library: ");
	} else {
		mode_t old = umask(0);

		r = place_all(in, &l, quiet, pipe_bytes, ret);
		(void)umask(old);
	}
	free(l.bytes);
	return r;
}

/* ---- and away again ------------------------------------------------------------------------- */

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Libraries and, of @in's own attempts, FIFOs. */
static void remove_files(const struct inject *in, int dir_dfd, bool libraries)
{
	int fd = files_open(dir_dfd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	char events[32], control[32];
	struct dirent *e;

	snprintf(events, sizeof(events), "events-%d-", in->pid);
	snprintf(control, sizeof(control), "control-%d-", in->pid);
	for (int i = 0; dir && i < 1000 && (e = readdir(dir)); i++)
		if (begins(e->d_name, events) || begins(e->d_name, control) ||
		    (libraries &&
		     (begins(e->d_name, "libkindling-") || begins(e->d_name, ".libkindling-"))))
			(void)unlinkat(dir_dfd, e->d_name, 0);
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
}

static void remove_dirs(const struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open(in->root_dfd, "tmp", O_PATH | O_DIRECTORY, 0);
	CLEANUP(fd_closep)
	int dir = files_open(in->root_dfd, "tmp/kindling", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	/* only when empty: another attempt or another version may be there */
	if (dir >= 0)
		(void)unlinkat(dir, KINDLING_VERSION, AT_REMOVEDIR);
	if (tmp >= 0)
		(void)unlinkat(tmp, "kindling", AT_REMOVEDIR);
}

/* @lock_fd may hold the shared lock; turning it into an exclusive one fails while another holds it.
 */
static void remove_all(const struct inject *in, int dir_dfd, int lock_fd)
{
	bool last = lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) == 0;

	/* FIFOs of the target are in a sticky directory of its root's: both may be needed */
	if (files_as_target(in) == 0)
		remove_files(in, dir_dfd, last);
	if (files_as_keeper(in) == 0) {
		remove_files(in, dir_dfd, last);
		if (last)
			remove_dirs(in);
	}
	files_as_root();
	if (last)
		remove_dirs(in);
}

void place_remove(const struct inject *in, struct placement *p)
{
	if (p->dir_dfd >= 0)
		remove_all(in, p->dir_dfd, p->lock_fd);
	p->dir_dfd = fd_close(p->dir_dfd);
	p->lock_fd = fd_close(p->lock_fd);
}

void place_cleanup(const struct inject *in)
{
	CLEANUP(fd_closep)
	int dfd = files_open(in->root_dfd, PLACE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (dfd >= 0)
		remove_all(in, dfd, dfd);
}
