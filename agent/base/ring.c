/* The reader's side of ring.h. It sets what it has read to 0. */
#include "agent/base/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void ring_release(struct ring *r, uint32_t len)
{
	memset(ring_header(r, r->tail), 0, len);
	__atomic_store_n(&r->tail, r->tail + len, __ATOMIC_RELEASE);
}

const struct ring_sample *ring_peek(struct ring *r, uint64_t end)
{
	while (r->tail < end) {
		uint64_t header = __atomic_load_n(ring_header(r, r->tail), __ATOMIC_ACQUIRE);

		if (header == 0)
			return NULL;
		if ((header & 0xff) == RING_HDR_SAMPLE)
			return (const struct ring_sample *)(ring_header(r, r->tail) + 1);
		ring_release(r, (uint32_t)(header >> 8));
	}
	return NULL;
}

void ring_pop(struct ring *r)
{
	ring_release(r, (uint32_t)(*ring_header(r, r->tail) >> 8));
}

int ring_init(struct ring *r, uint32_t bytes)
{
	uint32_t size = RING_BYTES_MIN;
	void *mem;

	while (size < bytes && size < RING_BYTES_MAX)
		size *= 2;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -ENOMEM;
	r->mem = mem;
	r->size = size;
	r->head = r->tail = 0;
	return 0;
}

void ring_deinit(struct ring *r)
{
	if (r->mem)
		munmap(r->mem, r->size);
	r->mem = NULL;
	r->size = 0;
	r->head = r->tail = 0;
}
