/*
 * A directory in the target's /tmp for one attempt, ".kindling-<pid>-<random>", in which place.c
 * makes kindling/<version>/ as it does in /tmp itself. It is used if another user owns
 * /tmp/kindling, has put something else there or holds a lock on it: in a /tmp of many users
 * anyone may create these names first.
 *
 * It belongs to the target and only the target may enter it (0700), so no third user can keep the
 * next attempt out of it. It is removed at the end of the attempt like all names; one that a killed
 * attempt left is removed by the next attempt that needs one, or by a cleanup. What belongs to
 * others is neither followed nor renamed nor removed.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define DIRS_MAX 64 /* directories that a cleanup cleans: the target may make any number */
#define DIGITS	 16
#define PREFIX	 ".kindling-"

/* ---- names ---------------------------------------------------------------------------------- */

bool private_dir_name(const char *path, char ret[PRIVATE_DIR_BYTES])
{
	const char *name = strncmp(path, PREFIX, strlen(PREFIX)) ? strstr(path, "/" PREFIX) : path;
	size_t pid, random, len;

	if (!name)
		return false;
	name += *name == '/';
	pid = strspn(name + strlen(PREFIX), "0123456789");
	len = strlen(PREFIX) + pid;
	random = name[len] == '-' ? strspn(name + len + 1, "0123456789abcdef") : 0;
	len += 1 + random;
	if (pid < 1 || pid > 10 || random != DIGITS || (name[len] && name[len] != '/'))
		return false;
	snprintf(ret, PRIVATE_DIR_BYTES, "%.*s", (int)len, name);
	return true;
}

/* Is it the name of a directory for attempts on @in? */
static bool private_dir_is_of(const struct inject *in, const char *name)
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), PREFIX "%d-", in->pid);
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* ---- for an attempt ------------------------------------------------------------------------- */

bool private_dir_is_safe(const struct inject *in, int tmp_dfd)
{
	struct stat st;

	return files_is_private(in, tmp_dfd, &st);
}

/* Opens @name in @tmp_dfd if it is a directory of the target that only the target may enter. */
static int private_dir_open(const struct inject *in, int tmp_dfd, const char *name)
{
	CLEANUP(fd_closep)
	int fd = files_open(tmp_dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == in->uid && !(st.st_mode & 077) ? TAKE_FD(fd) : -EPERM;
}

/* Creates @name, which must not exist. */
static int private_dir_make(const struct inject *in, const char *name, struct placement *p)
{
	int fd = mkdirat(p->tmp_dfd, name, 0700) < 0 ? -errno
						     : private_dir_open(in, p->tmp_dfd, name);

	if (fd < 0)
		return fd;
	p->outer_dfd = p->tmp_dfd;
	p->tmp_dfd = fd;
	snprintf(p->private_dir, sizeof(p->private_dir), "%s", name);
	return 0;
}

int private_dir_enter(const struct inject *in, struct placement *p)
{
	char name[PRIVATE_DIR_BYTES];
	uint64_t random;
	int r = files_as_target(in);

	if (r < 0)
		return r;
	/* the name of the former attach, if it is free: glibc recognises a loaded library by its
	 * path, so the agent is not mapped once more */
	r = private_dir_is_of(in, in->maps.private_dir)
		    ? private_dir_make(in, in->maps.private_dir, p)
		    : -EEXIST;
	if (r < 0 && getrandom(&random, sizeof(random), 0) == sizeof(random)) {
		snprintf(name, sizeof(name), PREFIX "%d-%016llx", in->pid,
			 (unsigned long long)random);
		r = private_dir_make(in, name, p);
	}
	files_as_root();
	return r;
}

/* Removes @name, a private directory, if it is empty; nobody else can put another in its place,
 * because /tmp is safe. */
static void private_dir_remove(const struct inject *in, int tmp_dfd, const char *name)
{
	if (files_as_target(in) == 0)
		(void)unlinkat(tmp_dfd, name, AT_REMOVEDIR);
	files_as_root();
	(void)unlinkat(tmp_dfd, name, AT_REMOVEDIR);
}

void private_dir_leave(const struct inject *in, struct placement *p)
{
	if (p->outer_dfd < 0)
		return;
	private_dir_remove(in, p->outer_dfd, p->private_dir);
	fd_close(p->tmp_dfd);
	p->tmp_dfd = p->outer_dfd;
	p->outer_dfd = -1;
	p->private_dir[0] = '\0';
}

/* ---- after a killed attempt ------------------------------------------------------------------ */

/* Returns false if @name is not such a directory. */
static bool private_dir_clean(const struct inject *in, int tmp_dfd, const char *name)
{
	CLEANUP(fd_closep) int dfd = private_dir_open(in, tmp_dfd, name);

	if (dfd < 0)
		return false;
	place_cleanup_in(in, dfd);
	private_dir_remove(in, tmp_dfd, name);
	return true;
}

void private_dir_cleanup(const struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);
	char dir[PRIVATE_DIR_BYTES];
	const char *name;
	struct names names;
	int n = 0;

	if (tmp < 0 || !private_dir_is_safe(in, tmp))
		return;
	names_begin();
	names_open(&names, tmp);
	while (n < DIRS_MAX && (name = names_next(&names)))
		if (private_dir_name(name, dir) && private_dir_is_of(in, dir))
			n += private_dir_clean(in, tmp, dir);
	names_close(&names);
}
