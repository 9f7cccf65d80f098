/*
 * The memory of a HotSpot JVM, and the tables that it exports for debuggers (gHotSpotVMStructs), 8
 * to 28 alike. It is a hostile process's: every address is only ever handed to pread() on
 * /proc/PID/mem, every loop has an end. At worst we believe a wrong value about a process that lies
 * about itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VMMEMORY_WINDOW	 16384 /* bytes that are kept: names lie close together */
#define VMMEMORY_WINDOWS 64
#define VMMEMORY_ROWS	 20000 /* a table has no more */

struct vmmemory {
	int fd;
	uint64_t base; /* of libjvm.so */
	uint64_t symtab, strtab;
	size_t symbols;
	struct vmmemory_window {
		uint64_t address; /* 0 = empty */
		uint8_t bytes[VMMEMORY_WINDOW];
	} windows[VMMEMORY_WINDOWS];
};

/* @m is large: let it be static. 0 or -errno. */
int vmmemory_open(int proc_dfd, struct vmmemory *m);
void vmmemory_close(struct vmmemory *m);

bool vmmemory_read(struct vmmemory *m, uint64_t address, void *ret, size_t size);
uint64_t vmmemory_word(struct vmmemory *m, uint64_t address); /* 0 also where nothing is */
/* Does this text with its NUL lie there? At most 63 characters. */
bool vmmemory_is(struct vmmemory *m, uint64_t address, const char *wanted);
/* What the variable @name of libjvm holds; 0 = there is none. */
uint64_t vmmemory_variable(struct vmmemory *m, const char *name);

/* A row of gHotSpotVMStructs. */
struct vmmemory_field {
	const char *type, *field; /* that is looked for */
	bool found;
	uint64_t offset; /* in an object */
	uint64_t address; /* of a static field */
};
void vmmemory_fields(struct vmmemory *m, struct vmmemory_field *fields, size_t n);
/* A row of gHotSpotVMIntConstants. */
bool vmmemory_constant(struct vmmemory *m, const char *name, int32_t *ret);
