/*
 * Reads the memory of a HotSpot JVM, and finds the variables that its libjvm exports, in JDK 8 to
 * 28 alike. The process may be hostile: addresses are only passed to pread() on /proc/PID/mem, and
 * every loop is bounded. At worst, a process can make kindling believe wrong values about itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "injector/inject.h"

#define VMMEMORY_PAGE  4096
#define VMMEMORY_PAGES 1024 /* libjvm's tables and their names take some 3 MB */

struct vmmemory {
	int fd;
	uint64_t base; /* address of libjvm.so */
	uint64_t symtab, strtab;
	size_t symbols;
	/* a cache: page N of the memory is in entry N % VMMEMORY_PAGES */
	uint64_t addresses[VMMEMORY_PAGES]; /* the page's address; 0 = the entry is empty */
	uint8_t pages[VMMEMORY_PAGES][VMMEMORY_PAGE];
};

/*
 * The memory of @in's JVM; owned by @in. It is opened once, and belongs to the program that the
 * process runs then: after an exec nothing can be read any more, proc(5). Returns 0, or -errno: it
 * cannot be read, or is not that of a HotSpot JVM.
 */
int vmmemory_of(struct inject *in, struct vmmemory **ret);
void vmmemory_close(struct inject *in);

/* Reads memory that never changes, such as tables and names: pages are read once and kept. */
bool vmmemory_read(struct vmmemory *m, uint64_t address, void *ret, size_t size);
uint64_t vmmemory_word(struct vmmemory *m,
		       uint64_t address); /* 0 also if the memory is not mapped */
/* Is the string @wanted, with its NUL, at the address? */
bool vmmemory_is(struct vmmemory *m, uint64_t address, const char *wanted);
/* Reads memory that may change, bypassing the cache. */
bool vmmemory_read_now(const struct vmmemory *m, uint64_t address, void *ret, size_t size);

/* The addresses of the variables @names of libjvm, found in one pass over its symbols; 0 = there is
 * none. */
void vmmemory_variables(struct vmmemory *m, const char *const names[], uint64_t ret[], size_t n);
