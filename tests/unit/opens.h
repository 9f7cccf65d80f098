/* Finds out whether any file of a directory was opened: the code under test must not open
 * devices, because an open alone can have effects. */
#pragma once

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tests/unit/unit.h"

/* Makes a node of the null device; false = only root may, and not in every user namespace. */
static inline bool make_device(int dfd, const char *name, uid_t uid)
{
	return mknodat(dfd, name, S_IFCHR | 0666, makedev(1, 3)) == 0 &&
	       fchownat(dfd, name, uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fchmodat(dfd, name, 0666, 0) == 0;
}

static inline int watch_opens(const char *dir)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(inotify_add_watch(fd, dir, IN_OPEN) >= 0);
	return fd;
}

/* Was the entry @name opened since? An open with O_PATH does not count, inotify(7). */
static inline bool was_opened(int watch_fd, const char *name)
{
	char buf[16384] __attribute__((aligned(8)));
	ssize_t n = read(watch_fd, buf, sizeof(buf));
	bool opened = false;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(buf + at);

		opened |= e->len && strncmp(e->name, name, strlen(name)) == 0;
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return opened;
}
