/* See tasks.h. Uses getdents64 by a raw call, because readdir needs malloc and is not on the list
 * of libc_stub.c. */
#include "agent/base/tasks.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct dirent64_head {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static uint32_t tasks_number(const char *p)
{
	uint32_t n = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + (uint32_t)(*p - '0');
	return n;
}

void tasks_each(void (*on)(uint32_t tid, void *context), void *context)
{
	static char buf[32768];
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return;
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct dirent64_head *e = (const void *)(buf + at);
			uint32_t tid = tasks_number(e->name);

			if (tid)
				on(tid, context);
			at += e->reclen;
		}
	}
	close(fd);
}
