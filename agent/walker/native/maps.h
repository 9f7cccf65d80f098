/*
 * The executable file mappings of the process. The agent's thread reads them from /proc/self/maps
 * and publishes them to the handler as unwind ranges (unwind.h); the writer looks up the mapping of
 * a pc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/base/walk.h"

#define MAPS_MAX      1024 /* executable mappings; any further ones are left out, and counted */
#define MAPS_ROWS_MAX (4u << 20) /* bytes of all unwind rows */

/* One line of /proc/PID/maps. */
struct maps_line {
	uint64_t start, end, offset;
	uint64_t device, inode;
	bool executable;
	const char *path; /* borrowed from the line, without a terminating NUL */
	uint32_t path_len;
};

/* Parses one line (without its newline); false if it is malformed. Pure. */
bool maps_parse_line(const char *line, size_t len, struct maps_line *ret);

/* Declares that the library in [low, high) is never unloaded, so that its tables can be read
 * without a copy. */
void maps_stays(uint64_t low, uint64_t high);
/* Reads changes and publishes them. 0, or -errno, and then the old state remains. */
int maps_refresh(void);
bool maps_find(uint64_t pc, struct walk_mapping *ret);
/* Frees everything, except for rows that a handler may be reading: these stay until the next
 * refresh. */
void maps_free(void);
uint64_t maps_bytes(void);
/* Number of mappings whose rows did not fit into MAPS_ROWS_MAX, and of mappings beyond MAPS_MAX:
 * native stacks end in them. */
uint32_t maps_left_out(void);
