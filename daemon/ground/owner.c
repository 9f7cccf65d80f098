/* See owner.h. Shared by the daemon, which leaves such a JVM alone, and the injector. */
#include "daemon/ground/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/mem.h"

/* exec() takes 6 MiB of arguments and environment at most, with whatever limits. */
#define ENVIRON_MAX (8u << 20)

static const char name[] = OWNER_VARIABLE "=";
#define NAME_LEN (sizeof(name) - 1)

/* So far of one entry. */
struct entry {
	size_t len;
	bool is_it; /* it begins as the name does */
	char value; /* its first byte */
};

static bool is_no(const struct entry *e)
{
	return e->is_it && e->len > NAME_LEN && !(e->len == NAME_LEN + 1 && e->value == '0');
}

/* true: an entry that ends here is a no. Pieces may part entries anywhere. */
static bool core_owner_feed(struct entry *e, const char *p, size_t len)
{
	for (const char *end = p + len; p < end; p++) {
		if (*p == '\0') {
			if (is_no(e))
				return true;
			*e = (struct entry){ .is_it = true };
			continue;
		}
		if (!e->is_it) { /* to its last byte */
			p = memchr(p, '\0', (size_t)(end - p));
			if (!p)
				return false;
			p--;
			continue;
		}
		if (e->len < NAME_LEN)
			e->is_it = *p == name[e->len];
		else if (e->len == NAME_LEN)
			e->value = *p;
		e->len++;
	}
	return false;
}

bool owner_says_no(const char *environ, size_t len)
{
	struct entry e = { .is_it = true };

	return core_owner_feed(&e, environ, len) || is_no(&e);
}

int owner_forbids(int pid_dfd)
{
	CLEANUP(fd_closep) int fd = openat(pid_dfd, "environ", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct entry e = { .is_it = true };
	char piece[16384];
	size_t sum = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (sum < ENVIRON_MAX && (n = read(fd, piece, sizeof(piece))) > 0) {
		if (core_owner_feed(&e, piece, (size_t)n))
			return 1;
		sum += (size_t)n;
	}
	return n < 0 ? -errno : is_no(&e);
}
