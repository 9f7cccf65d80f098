/*
 * The memory of a HotSpot JVM, and the variables that its libjvm exports, 8 to 28 alike. It is a
 * hostile process's: every address is only ever handed to pread() on /proc/PID/mem, every loop has
 * an end. At worst we believe a wrong value about a process that lies about itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "injector/inject.h"

#define VMMEMORY_PAGE  4096
#define VMMEMORY_PAGES 1024 /* libjvm's tables and their names lie in some 3 MB */

struct vmmemory {
	int fd;
	uint64_t base; /* of libjvm.so */
	uint64_t symtab, strtab;
	size_t symbols;
	/* page N of memory is kept in place N % VMMEMORY_PAGES */
	uint64_t addresses[VMMEMORY_PAGES]; /* 0 = none is */
	uint8_t pages[VMMEMORY_PAGES][VMMEMORY_PAGE];
};

/*
 * That of @in's JVM. It is opened once, and belongs to the program that was in the process then:
 * when another has been executed nothing can be read any more, proc(5).
 *
 * Returns 0, or -errno: it cannot be read, or is not as HotSpot's is.
 */
int vmmemory_of(struct inject *in, struct vmmemory **ret);
void vmmemory_close(struct inject *in);

/* For what never changes, such as tables and names: pages are read once and kept. */
bool vmmemory_read(struct vmmemory *m, uint64_t address, void *ret, size_t size);
uint64_t vmmemory_word(struct vmmemory *m,
		       uint64_t address); /* 0 also for memory that is not mapped */
/* Does @text with its NUL stand at the address? */
bool vmmemory_is(struct vmmemory *m, uint64_t address, const char *wanted);
/* For what changes: read anew each time. */
bool vmmemory_read_now(const struct vmmemory *m, uint64_t address, void *ret, size_t size);

/* Where the variables @names of libjvm lie, in one pass over its symbols; 0 = there is none. */
void vmmemory_variables(struct vmmemory *m, const char *const names[], uint64_t ret[], size_t n);
