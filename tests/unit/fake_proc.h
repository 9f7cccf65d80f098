/* A made-up /proc in a temporary directory, for code that reads /proc through a directory fd. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/unit/unit.h"

static char fake_root[64];

static inline void fake_make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

static inline void fake_bytes(const char *name, const void *data, size_t len)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	fake_make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
}

static inline void fake_file(const char *name, const char *text)
{
	fake_bytes(name, text, strlen(text));
}

static inline void fake_link(const char *name, const char *target)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	fake_make_parents(path);
	(void)unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static inline int fake_open(void)
{
	strcpy(fake_root, "/tmp/fake_proc.XXXXXX");
	assert_non_null(mkdtemp(fake_root));
	return open(fake_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline int fake_remove_one(const char *path, const struct stat *st, int type,
				  struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void fake_remove(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", fake_root, name);
	nftw(path, fake_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Adds a process; @maps and @caught (hex) decide whether it is a JVM. */
static inline void fake_process(int pid, unsigned long long start_time, const char *maps,
				const char *caught)
{
	char name[64], text[512];

	snprintf(name, sizeof(name), "%d/stat", pid);
	snprintf(text, sizeof(text),
		 "%d (java) S 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 20 0 %llu 1 1 0\n", pid,
		 start_time);
	fake_file(name, text);
	snprintf(name, sizeof(name), "%d/status", pid);
	snprintf(text, sizeof(text),
		 "Name:\tjava\nUid:\t1000\t1001\t1000\t1000\nGid:\t100\t101\t100\t100\n"
		 "NStgid:\t%d\t7\nNSpid:\t%d\t7\nSigCgt:\t%s\n",
		 pid, pid, caught);
	fake_file(name, text);
	snprintf(name, sizeof(name), "%d/maps", pid);
	fake_file(name, maps);
}

#define FAKE_LIBJVM                                                                     \
	"7f0000000000-7f0000001000 r--p 00000000 fe:00 1   /jdk/lib/server/libjvm.so\n" \
	"7f0000001000-7f0000002000 r-xp 00001000 fe:00 1   /jdk/lib/server/libjvm.so\n"
#define FAKE_NO_JVM	  "7f0000001000-7f0000002000 r-xp 00001000 fe:00 1   /bin/sh\n"
#define FAKE_CATCHES_QUIT "2000000181005ccf"
#define FAKE_CATCHES_NONE "0000000000000000"
