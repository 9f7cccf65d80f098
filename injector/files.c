/*
 * Files in the target's root. openat2 resolves paths inside that root: no symbolic link except /tmp
 * itself is followed, no ".." leads out of it, and no magic link of /proc is followed. Files are
 * created with the fsuid of the target or of root in its user namespace, so kindling writes only
 * where these may write.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int files_as(uid_t uid, gid_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	/* both calls return the former value even on failure, so a second call with -1 reads the
	 * result */
	if ((gid_t)setfsgid((gid_t)-1) == gid && (uid_t)setfsuid((uid_t)-1) == uid)
		return 0;
	files_as_root();
	return -EPERM;
}

int files_as_target(const struct inject *in)
{
	return files_as(in->uid, in->gid);
}

int files_as_ns_root(const struct inject *in)
{
	return files_as(in->ns_root_uid, in->ns_root_gid);
}

void files_as_root(void)
{
	setfsuid(geteuid());
	setfsgid(getegid());
}

int files_open(int dfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, dfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int files_open_seen(int dfd, const char *name, int flags, mode_t type, uid_t uid)
{
	CLEANUP(fd_closep) int path_fd = files_open(dfd, name, O_PATH | O_NOFOLLOW, 0);
	char path[32];
	struct stat st;
	int fd;

	if (path_fd < 0)
		return path_fd;
	if (fstat(path_fd, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IFMT) != type || (uid != FILES_ANY && st.st_uid != uid))
		return -EPROTO;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int files_open_tmp(const struct inject *in)
{
	/* only here are links followed, because the JVM follows them too. Only the container's root
	 * can create them, and none leads out of the target's root */
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, in->root_dfd, "tmp", &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

bool files_is_private(const struct inject *in, int fd, struct stat *ret)
{
	if (fstat(fd, ret) < 0)
		return false;
	if (ret->st_uid != in->uid && ret->st_uid != in->ns_root_uid && ret->st_uid != 0)
		return false;
	return !(ret->st_mode & (S_IWGRP | S_IWOTH)) || ret->st_mode & S_ISVTX;
}
