/* See skywalking_saved.h. */
#include "daemon/upload/skywalking_saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "daemon/ground/hash.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/replace.h"

#define SAVED_MAGIC 0x316b736174444e4bull /* "KNDtask1" */
#define SAVED_TEMP  "task.tmp"

uint64_t skywalking_key(const char *task_id, uint32_t pid, uint64_t start_time)
{
	return hash_text(HASH_BEGIN ^ start_time ^ (uint64_t)pid << 40, task_id);
}

static void saved_name(uint64_t key, char buf[40])
{
	snprintf(buf, 40, "%016" PRIx64 ".task", key);
}

static uint32_t saved_crc(const struct skywalking_saved *s)
{
	struct skywalking_saved copy;

	memcpy(&copy, s, sizeof(copy));
	copy.crc = 0;
	return (uint32_t)crc32(0, (const Bytef *)&copy, sizeof(copy));
}

int skywalking_save(int dfd, struct skywalking_saved *s)
{
	char name[40];
	const struct replace file = { .dfd = dfd, .name = name, .temp = SAVED_TEMP, .mode = 0640 };

	s->magic = SAVED_MAGIC;
	s->crc = saved_crc(s);
	saved_name(s->key, name);
	return replace_with(&file, s, sizeof(*s));
}

void skywalking_unsave(int dfd, uint64_t key)
{
	char name[40];

	saved_name(key, name);
	(void)unlinkat(dfd, name, 0);
}

static bool saved_is_text(const char *s, size_t size)
{
	return memchr(s, '\0', size);
}

static bool saved_read(int dfd, const char *name, struct skywalking_saved *s)
{
	CLEANUP(fd_closep) int fd = openat(dfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && read(fd, s, sizeof(*s)) == (ssize_t)sizeof(*s) &&
	       s->magic == SAVED_MAGIC && s->crc == saved_crc(s) && s->step <= SKYWALKING_OVER &&
	       saved_is_text(s->id.service, sizeof(s->id.service)) &&
	       saved_is_text(s->id.name, sizeof(s->id.name)) &&
	       saved_is_text(s->task.id, sizeof(s->task.id)) &&
	       saved_is_text(s->why, sizeof(s->why));
}

void skywalking_load(int dfd, skywalking_saved_fn *fn, void *userdata)
{
	int fd = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct skywalking_saved s;
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (len < 5 || strcmp(e->d_name + len - 5, ".task") != 0)
			continue;
		if (saved_read(dfd, e->d_name, &s))
			fn(userdata, &s);
		else
			(void)unlinkat(dfd, e->d_name, 0);
	}
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
}
