/* See heap.h. With other C libraries than glibc there is nothing to do. */
#include "daemon/core/heap.h"

#include <features.h> /* defines __GLIBC__ if the C library is glibc */

#ifdef __GLIBC__
#include <malloc.h>

#define SPARE_BYTES (2ul << 20)

void heap_begin(size_t apart_bytes)
{
	/* setting a threshold also ends glibc's own adjustment of it, mallopt(3) */
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, (int)apart_bytes);
	(void)mallopt(M_TRIM_THRESHOLD, (int)apart_bytes);
}

void heap_give_back(void)
{
	if (mallinfo2().fordblks > SPARE_BYTES)
		(void)malloc_trim(0);
}
#else
void heap_begin(size_t apart_bytes)
{
	(void)apart_bytes;
}

void heap_give_back(void)
{
}
#endif
