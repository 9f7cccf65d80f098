/* See owner.h. The daemon does not profile such a JVM, and the injector checks it once more. */
#include "daemon/ground/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/mem.h"

/* execve(2) never accepts more than 6 MiB of arguments and environment, whatever the limits are. */
#define ENVIRON_MAX (8u << 20)

static const char name[] = OWNER_VARIABLE "=";
#define NAME_LEN (sizeof(name) - 1)

/* What was read so far of the current entry. */
struct entry {
	size_t len;
	bool is_it; /* the entry begins with the name, as far as it was read */
	char value; /* first byte of the value */
};

static bool owner_entry_refuses(const struct entry *e)
{
	return e->is_it && e->len > NAME_LEN && !(e->len == NAME_LEN + 1 && e->value == '0');
}

/* Reads another piece of the environment, which may begin and end inside of entries. true: an entry
 * that refuses kindling ends in it. */
static bool owner_feed(struct entry *e, const char *p, size_t len)
{
	for (const char *end = p + len; p < end; p++) {
		if (*p == '\0') {
			if (owner_entry_refuses(e))
				return true;
			*e = (struct entry){ .is_it = true };
			continue;
		}
		if (!e->is_it) { /* skips to the end of the entry */
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

	return owner_feed(&e, environ, len) || owner_entry_refuses(&e);
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
		if (owner_feed(&e, piece, (size_t)n))
			return 1;
		sum += (size_t)n;
	}
	return n < 0 ? -errno : owner_entry_refuses(&e);
}
