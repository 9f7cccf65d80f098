/*
 * Files in the target's root. Paths are resolved by openat2 inside that root: no symbolic link is
 * followed, no ".." leads out, no magic link of /proc is taken. Made with the target's own fsuid and
 * fsgid: what it may not write, we do not write for it.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int files_as_target(const struct inject *in)
{
	setfsgid(in->gid);
	setfsuid(in->uid);
	/* they return the former value, also on failure: ask again to see */
	if ((gid_t)setfsgid((gid_t)-1) != in->gid || (uid_t)setfsuid((uid_t)-1) != in->uid)
		return -EPERM;
	return 0;
}

void files_as_root(void)
{
	setfsuid(0);
	setfsgid(0);
}

int files_open(const struct inject *in, int dfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	(void)in;
	fd = syscall(SYS_openat2, dfd, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

int files_mkdirs(const struct inject *in, const char *path)
{
	CLEANUP(fd_closep) int dfd = files_open(in, in->root_dfd, ".", O_PATH | O_DIRECTORY, 0);
	char copy[128], *save = NULL;

	if (dfd < 0)
		return dfd;
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *name = strtok_r(copy, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		int next = files_open(in, dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

		if (next == -ENOENT) {
			if (mkdirat(dfd, name, 0755) < 0 && errno != EEXIST)
				return -errno;
			next = files_open(in, dfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		}
		if (next < 0)
			return next;
		fd_close(dfd);
		dfd = next;
	}
	return TAKE_FD(dfd);
}
