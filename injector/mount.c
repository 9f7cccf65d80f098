/*
 * Puts the library on a file system of its own if /tmp is noexec, full or over its quota: a small
 * tmpfs that is filled while no process can reach it, made read-only, and only then moved into the
 * target's mount namespace. It reveals no path of the host. The JVM's mapping keeps its contents,
 * so it is unmounted as soon as the library is loaded.
 *
 * move_mount and umount2 need a caller inside the mount namespace: a child process enters it, makes
 * that one call, with descriptors instead of paths, and ends. The injector never changes its own
 * namespaces.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/stat.h>
#include <sched.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The calls are made by number, because glibc has functions for them only since 2.36. sys/mount.h
 * conflicts with linux/mount.h, so the constants needed from it are defined here. */
#define MNT_DETACH	2
#define UMOUNT_NOFOLLOW 8

#define SPARE_BYTES	 65536
#define FILES		 16
#define CHILD_DEADLINE_S 5

/* ---- a detached mount -------------------------------------------------------------- */

static int mount_set(int fs, const char *key, const char *value)
{
	return syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

static int make_tmpfs(size_t bytes, unsigned files, const char *mode, int *ret)
{
	CLEANUP(fd_closep) int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	char size[32], inodes[32];
	int fd, r;

	if (fs < 0)
		return -errno;
	snprintf(size, sizeof(size), "%zu", bytes);
	snprintf(inodes, sizeof(inodes), "%u", files);
	r = mount_set(fs, "source", MOUNT_SOURCE);
	if (r == 0)
		r = mount_set(fs, "size", size);
	if (r == 0)
		r = mount_set(fs, "nr_inodes", inodes);
	if (r == 0)
		r = mount_set(fs, "mode", mode);
	if (r == 0 && syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	if (r < 0)
		return r;
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

int mount_make(const struct library *l, const char *name, int *ret)
{
	struct mount_attr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
	CLEANUP(fd_closep) int fd = -1;
	int r = make_tmpfs(l->len + SPARE_BYTES, FILES, "0755", &fd);

	if (r == 0)
		r = library_write(fd, name, l);
	if (r == 0 &&
	    syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)) < 0)
		r = -errno;
	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	return 0;
}

int mount_make_cover(size_t bytes, unsigned files, int *ret)
{
	return make_tmpfs(bytes, files, "1777", ret);
}

/* ---- one call inside the namespace ---------------------------------------------------------- */

struct call {
	int mount_fd, dir_fd;
};

static int call_move(const struct call *c)
{
	return (int)syscall(SYS_move_mount, c->mount_fd, "", c->dir_fd, "",
			    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Unmounts ".", after a change to the mount's root: a path could lead to another mount on top of
 * it. */
static int call_unmount(const struct call *c)
{
	return fchdir(c->mount_fd) < 0
		       ? -1
		       : (int)syscall(SYS_umount2, ".", MNT_DETACH | UMOUNT_NOFOLLOW);
}

static int wait_for_child(pid_t pid)
{
	int status;

	/* the child's alarm bounds this wait */
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -ETIMEDOUT;
	return -WEXITSTATUS(status);
}

static int mount_inside(const struct inject *in, int (*fn)(const struct call *),
			const struct call *c)
{
	pid_t pid;

	if (in->mnt_ns_fd < 0)
		return -ENOSYS;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		(void)alarm(CHILD_DEADLINE_S);
		if (setns(in->mnt_ns_fd, CLONE_NEWNS) < 0 || fn(c) < 0)
			_exit(errno);
		_exit(0);
	}
	return wait_for_child(pid);
}

int mount_attach(const struct inject *in, int mount_fd, int dir_fd)
{
	struct call c = { mount_fd, dir_fd };

	return mount_inside(in, call_move, &c);
}

int mount_detach(const struct inject *in, int mount_fd)
{
	struct call c = { mount_fd, -1 };

	return mount_inside(in, call_unmount, &c);
}

/* ---- recognising it --------------------------------------------------------------- */

bool mount_is_ours(int dfd)
{
	struct statfs fs;
	struct statx st;

	/* it must be the root of a tmpfs mount and owned by the host's root. Nobody inside a user
	 * namespace can create such a directory; anyone who can (with CAP_SYS_ADMIN) would only
	 * lose a mount of their own */
	if (fstatfs(dfd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	    syscall(SYS_statx, dfd, "", AT_EMPTY_PATH, STATX_UID, &st) < 0)
		return false;
	return st.stx_attributes & STATX_ATTR_MOUNT_ROOT && st.stx_uid == 0;
}
