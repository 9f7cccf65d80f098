/* See release.h. */
#include "daemon/discovery/release.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/utf8.h"

#define RELEASE_MAX_BYTES   (16 * 1024)
#define MOUNTINFO_MAX_BYTES (256 * 1024)
#define HOME_DEPTH_MAX	    5 /* jre/lib/amd64/server of JDK 8, and one more */

/* Copies the value of KEY="value" or KEY=value; false = there is none. */
static bool release_value_of(const char *text, const char *key, char *ret, size_t ret_size)
{
	size_t key_len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *value;
		size_t len;

		if (*line == '\n')
			line++;
		if (strncmp(line, key, key_len) != 0 || line[key_len] != '=')
			continue;
		value = line + key_len + 1;
		len = strcspn(value, "\r\n");
		if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
			value++;
			len -= 2;
		}
		return utf8_copy(ret, ret_size, value, len) > 0;
	}
	return false;
}

bool release_parse(const char *text, char *ret, size_t ret_size)
{
	char vendor[64], version[64];

	if (!release_value_of(text, "JAVA_VERSION", version, sizeof(version)))
		return false;
	if (release_value_of(text, "IMPLEMENTOR", vendor, sizeof(vendor)) &&
	    strcmp(vendor, "N/A") != 0)
		snprintf(ret, ret_size, "%s %s", vendor, version);
	else
		snprintf(ret, ret_size, "%s", version);
	return true;
}

static bool release_is_local_type(const char *type, size_t len)
{
	static const char *const local[] = { "ext4", "ext3",	 "ext2",   "xfs",      "btrfs",
					     "f2fs", "overlay",	 "aufs",   "tmpfs",    "ramfs",
					     "zfs",  "squashfs", "erofs",  "bcachefs", "iso9660",
					     "jfs",  "vfat",	 "rootfs", "reiserfs", "shiftfs" };

	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (strlen(local[i]) == len && memcmp(local[i], type, len) == 0)
			return true;
	return false;
}

/* Is the mount point, @len bytes at @point, @path itself or a directory above it? */
static bool release_is_above(const char *point, size_t len, const char *path)
{
	if (len == 1 && point[0] == '/')
		return true;
	return strncmp(path, point, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/*
 * A line: id parent major:minor root mount_point options [optional ...] - type source options.
 * Spaces in a mount point are escaped: such a mount is then not found to be above a path with a
 * space, so paths with spaces and backslashes are not local for us.
 */
bool release_is_local(const char *mountinfo, const char *path)
{
	bool any = false;

	if (strpbrk(path, " \t\n\\"))
		return false;
	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n'), *point = line, *type;
		size_t len;

		for (int field = 0; field < 4 && point; field++) {
			point = memchr(point, ' ', (size_t)(end - point));
			point = point ? point + 1 : NULL;
		}
		type = memmem(line, (size_t)(end - line), " - ", 3);
		if (!point || !type)
			return false; /* cut off, or in an unknown format */
		len = strcspn(point, " \n");
		type += 3;
		if (release_is_above(point, len, path)) {
			if (!release_is_local_type(type, strcspn(type, " \n")))
				return false;
			any = true;
		}
		line = *end ? end + 1 : end;
	}
	return any;
}

static int release_open_in(int root_dfd, const char *path, int flags)
{
	/* no links, because only the mounts above the path as it is written were checked */
	struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root_dfd, path, &how, sizeof(how));
}

static void release_read_build(int root_dfd, const char *libjvm, char *ret, size_t ret_size)
{
	CLEANUP(fd_closep) int fd = release_open_in(root_dfd, libjvm, O_PATH);
	struct tm tm = { 0 };
	struct stat st;
	char when[32];

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !gmtime_r(&st.st_mtim.tv_sec, &tm) ||
	    !strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
		return;
	snprintf(ret, ret_size, "%lld bytes of %s", (long long)st.st_size, when);
}

static bool release_read_file(int root_dfd, const char *path, char *ret, size_t ret_size)
{
	CLEANUP(fd_closep)
	int fd = release_open_in(root_dfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char text[RELEASE_MAX_BYTES];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return release_parse(text, ret, ret_size);
}

void release_read(int pid_dfd, const char *libjvm, struct jvm *ret)
{
	CLEANUP(freep) char *mountinfo = NULL;
	CLEANUP(fd_closep) int root_dfd = -1;
	char path[4096 + 16];
	size_t len = strlen(libjvm);
	ssize_t n;

	ret->jdk[0] = ret->libjvm_build[0] = '\0';
	mountinfo = malloc(MOUNTINFO_MAX_BYTES);
	if (!mountinfo || len >= 4096)
		return;
	n = proc_read(pid_dfd, "mountinfo", mountinfo, MOUNTINFO_MAX_BYTES);
	if (n <= 0 || n == MOUNTINFO_MAX_BYTES - 1 || !release_is_local(mountinfo, libjvm))
		return;
	root_dfd = openat(pid_dfd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_dfd < 0)
		return;
	if (!ret->libjvm_deleted)
		release_read_build(root_dfd, libjvm, ret->libjvm_build, sizeof(ret->libjvm_build));
	memcpy(path, libjvm, len + 1);
	for (int depth = 0; depth <= HOME_DEPTH_MAX; depth++) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return;
		strcpy(slash, "/release");
		if (release_is_local(mountinfo, path) &&
		    release_read_file(root_dfd, path, ret->jdk, sizeof(ret->jdk)))
			return;
		*slash = '\0';
	}
}
