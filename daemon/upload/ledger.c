/* See ledger.h. */
#include "daemon/upload/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "daemon/ground/mem.h"

#define LEDGER_MAGIC 0x316764656c444e4bull /* "KNDledg1" */
#define LEDGER_SLOT  512

struct ledger_slot {
	uint64_t magic, generation;
	struct ledger ledger;
	uint32_t reserved, crc;
};
_Static_assert(sizeof(struct ledger_slot) <= LEDGER_SLOT, "on disk");

const char *const ledger_cause_names[LEDGER_CAUSE_COUNT] = {
#define X(id, name) name,
	LEDGER_CAUSES(X)
#undef X
};

static uint32_t ledger_crc(const struct ledger_slot *s)
{
	return (uint32_t)crc32(0, (const Bytef *)s, offsetof(struct ledger_slot, crc));
}

/* false: the slot is empty or torn, or its sums are impossible. */
static bool ledger_read_slot(int fd, int slot, struct ledger_slot *ret)
{
	uint64_t sum;

	if (pread(fd, ret, sizeof(*ret), (off_t)slot * LEDGER_SLOT) != (ssize_t)sizeof(*ret) ||
	    ret->magic != LEDGER_MAGIC || ret->crc != ledger_crc(ret))
		return false;
	sum = ret->ledger.delivered + ret->ledger.lost_unconfirmed + ret->ledger.in_spool;
	for (int i = 0; i < LEDGER_CAUSES_MAX; i++)
		sum += ret->ledger.dropped[i];
	return sum == ret->ledger.taken;
}

/* The slot that was written last; -1 = none is valid. */
static int ledger_newest(int fd, struct ledger_slot *ret)
{
	struct ledger_slot s;
	int newest = -1;

	for (int i = 0; i < 2; i++)
		if (ledger_read_slot(fd, i, &s) && (newest < 0 || s.generation > ret->generation)) {
			*ret = s;
			newest = i;
		}
	return newest;
}

int ledger_open(int dfd, struct ledger *ret, bool *ret_new)
{
	CLEANUP(fd_closep)
	int fd = openat(dfd, "ledger", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
	struct ledger_slot s;

	if (fd < 0)
		return -errno;
	*ret_new = ledger_newest(fd, &s) < 0;
	if (!*ret_new) {
		*ret = s.ledger;
		return TAKE_FD(fd);
	}
	memset(ret, 0, sizeof(*ret));
	ret->next_seq = 1;
	/* writes both slots, so that both have their blocks on the disk */
	if (ftruncate(fd, 0) < 0 || ledger_write(fd, ret, false) < 0 ||
	    ledger_write(fd, ret, true) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int ledger_write(int fd, const struct ledger *l, bool sync)
{
	struct ledger_slot s, next;
	int newest = ledger_newest(fd, &s);
	ssize_t n;

	memset(&next, 0, sizeof(next));
	next.magic = LEDGER_MAGIC;
	next.generation = newest < 0 ? 1 : s.generation + 1;
	next.ledger = *l;
	next.crc = ledger_crc(&next);
	n = pwrite(fd, &next, sizeof(next), newest == 0 ? LEDGER_SLOT : 0);
	if (n != (ssize_t)sizeof(next))
		return n < 0 ? -errno : -EIO;
	return sync && fdatasync(fd) < 0 ? -errno : 0;
}
