/*
 * The process's executable file mappings: read from /proc/self/maps by the agent's thread, given
 * to the handler as unwind ranges (unwind.h), and asked by the writer where a pc lies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/base/walk.h"

#define MAPS_MAX      1024 /* executable mappings; more are counted and left out */
#define MAPS_ROWS_MAX (4u << 20) /* bytes of unwind rows in all */

/* One line of /proc/PID/maps. */
struct maps_line {
	uint64_t start, end, offset;
	uint64_t device, inode;
	bool executable;
	const char *path; /* borrowed from the text, not terminated */
	uint32_t path_len;
};

/* Parse one line (without its newline); false if it is none. Pure. */
bool maps_parse_line(const char *line, size_t len, struct maps_line *ret);

/* A library that is never unloaded lies in [low, high): its tables are read where they are. */
void maps_stays(uint64_t low, uint64_t high);
/* Read anew what has changed and publish it. 0, or -errno (the old state holds). */
int maps_refresh(void);
bool maps_find(uint64_t pc, struct walk_mapping *ret);
/* Forget everything; rows that a handler may be reading stay until the next refresh. */
void maps_free(void);
uint64_t maps_bytes(void);
/* Libraries without rows because the memory for them is used up, and mappings beyond MAPS_MAX:
 * native stacks end in them. */
uint32_t maps_left_out(void);
