/*
 * Removes what place.c created: in the same attempt, or, if that was killed, in a later one or in a
 * cleanup. Attempts that share a directory hold a shared lock on it; the last one also removes the
 * library and the directories.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include "daemon/ground/version.h"

static bool remove_begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

enum removal {
	REMOVE_OWN, /* remove FIFOs and mount points of attempts on this target */
	REMOVE_DEAD, /* remove those of attempts that are over */
	REMOVE_ALL, /* remove the libraries too, which other targets may use */
};

/* Removes a mount point of an attempt on @in. Unmounts only a mount of kindling. */
static void remove_mount(const struct inject *in, int dir_dfd, const char *name)
{
	CLEANUP(fd_closep)
	int fd = files_open(dir_dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd >= 0 && mount_is_ours(fd))
		(void)mount_detach(in, fd);
	(void)unlinkat(dir_dfd, name, AT_REMOVEDIR);
}

/* The part after "events-<pid>-" in the name of an entry of an attempt on @in; NULL = the name has
 * another form. */
static const char *own_suffix(const struct inject *in, const char *name)
{
	static const char *const kinds[] = { "events", "control", "m" };
	char prefix[32];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(prefix, sizeof(prefix), "%s-%d-", kinds[i], in->pid);
		if (remove_begins(name, prefix))
			return name + strlen(prefix);
	}
	return NULL;
}

/*
 * Is that attempt over? As long as it runs it has its FIFO open for reading, and a FIFO can be
 * opened for writing without waiting only while it has a reader, fifo(7). An attempt that has no
 * FIFO yet may still run.
 */
static bool remove_is_over(const struct inject *in, int dir_dfd, const char *suffix)
{
	CLEANUP(fd_closep) int path_fd = -1, fd = -1;
	char name[64], path[32];
	struct stat st;

	snprintf(name, sizeof(name), "events-%d-%.32s", in->pid, suffix);
	path_fd = files_open(dir_dfd, name, O_PATH | O_NOFOLLOW, 0);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 && errno == ENXIO;
}

static void remove_one(const struct inject *in, int dir_dfd, const char *name)
{
	if (name[0] == 'm')
		remove_mount(in, dir_dfd, name);
	else
		(void)unlinkat(dir_dfd, name, 0);
}

/* The events FIFO of an attempt is removed last: it shows whether the attempt is over. */
static void remove_files(const struct inject *in, int dir_dfd, enum removal what)
{
	for (int events = 0; events < 2; events++) {
		struct names names;
		const char *name;

		names_open(&names, dir_dfd);
		while ((name = names_next(&names))) {
			const char *suffix = own_suffix(in, name);

			if (what == REMOVE_ALL && (remove_begins(name, "libkindling-") ||
						   remove_begins(name, ".libkindling-")))
				(void)unlinkat(dir_dfd, name, 0);
			if (suffix && (name[0] == 'e') == events &&
			    (what != REMOVE_DEAD || remove_is_over(in, dir_dfd, suffix)))
				remove_one(in, dir_dfd, name);
		}
		names_close(&names);
	}
}

/* Removes what the attempt @p has placed, by its names. @last: no other attempt uses the library.
 */
static void remove_own(const struct inject *in, const struct placement *p, bool last)
{
	char name[sizeof(p->library)];
	size_t len = strcspn(p->library, "/");

	(void)unlinkat(p->dir_dfd, p->control, 0);
	snprintf(name, sizeof(name), "%.*s", (int)len, p->library);
	if (p->library[len])
		remove_mount(in, p->dir_dfd, name);
	else if (last)
		(void)unlinkat(p->dir_dfd, name, 0);
	(void)unlinkat(p->dir_dfd, p->events, 0);
}

/* Removes @name if it is empty. A directory of another user stays: kindling did not create it. */
static void remove_dir(const struct inject *in, int dfd, const char *name)
{
	CLEANUP(fd_closep) int fd = files_open(dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd >= 0 && files_is_private(in, fd, &st))
		(void)unlinkat(dfd, name, AT_REMOVEDIR);
}

static void remove_dirs(const struct inject *in, int tmp_dfd, const char *version)
{
	CLEANUP(fd_closep)
	int dir = files_open(tmp_dfd, "kindling", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	/* removed only when empty: another attempt or version may use it */
	if (dir < 0 || !files_is_private(in, dir, &st))
		return;
	remove_dir(in, dir, version);
	remove_dir(in, tmp_dfd, "kindling");
}

/* Tries to turn the shared lock of @lock_fd into an exclusive one, which fails while another
 * attempt holds a lock. @own: the attempt that ends; NULL = this is a cleanup. */
static void remove_all(const struct inject *in, int tmp_dfd, const char *version, int dir_dfd,
		       int lock_fd, const struct placement *own)
{
	bool last = lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) == 0;
	enum removal what = last ? REMOVE_ALL : own ? REMOVE_OWN : REMOVE_DEAD;

	/* the target's FIFOs are in a sticky directory that belongs to root of its namespace, so
	 * both ids may be needed */
	if (files_as_target(in) == 0) {
		if (own)
			remove_own(in, own, last);
		remove_files(in, dir_dfd, what);
	}
	if (files_as_ns_root(in) == 0) {
		if (own)
			remove_own(in, own, last);
		remove_files(in, dir_dfd, what);
		if (last)
			remove_dirs(in, tmp_dfd, version);
	}
	files_as_root();
	if (last)
		remove_dirs(in, tmp_dfd, version);
}

void place_remove(const struct inject *in, struct placement *p)
{
	names_begin();
	if (p->mount_fd >= 0)
		(void)mount_detach(in, p->mount_fd);
	p->mount_fd = fd_close(p->mount_fd);
	/* a tmpfs over /tmp is unmounted with all its content */
	if (p->dir_dfd >= 0 && in->cover_fd < 0)
		remove_all(in, p->tmp_dfd, KINDLING_VERSION, p->dir_dfd, p->lock_fd, p);
	p->dir_dfd = fd_close(p->dir_dfd);
	p->lock_fd = fd_close(p->lock_fd);
	if (in->cover_fd < 0)
		private_dir_leave(in, p);
	p->tmp_dfd = fd_close(p->tmp_dfd);
	p->outer_dfd = fd_close(p->outer_dfd);
	if (in->cover_fd < 0)
		place_cleanup(in); /* of other versions */
}

static void clean_version(const struct inject *in, int tmp_dfd, int dir_dfd, const char *version)
{
	CLEANUP(fd_closep)
	int dfd = files_open(dir_dfd, version, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (dfd >= 0 && files_is_private(in, dfd, &st))
		remove_all(in, tmp_dfd, version, dfd, dfd, NULL);
}

/* In the directories of all versions, because a killed daemon may have had another version than
 * this one. Running attempts of other versions hold the same lock. */
void place_cleanup_in(const struct inject *in, int tmp_dfd)
{
	CLEANUP(fd_closep)
	int dfd = files_open(tmp_dfd, "kindling", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct names names;
	const char *name;
	struct stat st;

	if (dfd < 0)
		return;
	if (files_is_private(in, dfd, &st)) {
		clean_version(in, tmp_dfd, dfd, KINDLING_VERSION);
		names_open(&names, dfd);
		while ((name = names_next(&names)))
			if (version_is(name, strlen(name)) && strcmp(name, KINDLING_VERSION) != 0)
				clean_version(in, tmp_dfd, dfd, name);
		names_close(&names);
	}
	/* an attempt may have been killed after it made the first of the two directories */
	remove_dirs(in, tmp_dfd, KINDLING_VERSION);
}

void place_cleanup(const struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);

	names_begin();
	if (tmp >= 0)
		place_cleanup_in(in, tmp);
}
