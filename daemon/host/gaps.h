/*
 * CPU time that processes used between two daemons. The file "sampled" in the state directory has a
 * line for each process that is sampled, rewritten every second, with that moment and the CPU time
 * that the process had used by then. The next daemon counts what the process used since then as not
 * sampled, however the previous daemon ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/mem.h"

/* After a longer break the daemon was not restarted but switched off, and nothing is counted. */
#define GAPS_MAX_NS (300 * 1000000000ull)

/* A process when it was last sampled. */
struct gaps_last {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t cpu_ns; /* of its life */
	uint64_t mono_ns; /* CLOCK_MONOTONIC, which continues from one daemon to the next */
};

struct gaps;

/* @dir: the state directory. Lines of another boot, or of a process that has ended, are dropped. 0
 * or -ENOMEM. */
int gaps_open(const char *dir, struct gaps **ret);
struct gaps *gaps_free(struct gaps *g); /* the file stays; NULL is allowed */
/* The process is sampled again: true = the previous daemon sampled it, at most GAPS_MAX_NS ago.
 * Only true once. */
bool gaps_take(struct gaps *g, pid_t pid, uint64_t start_time, struct gaps_last *ret);
/* Rewrites the file: processes passed since gaps_begin(), and those of the previous daemon that are
 * not sampled yet. 0 or -errno; on failure the old content stays, or is truncated. */
void gaps_begin(struct gaps *g);
void gaps_add(struct gaps *g, const struct gaps_last *last);
int gaps_write(struct gaps *g);
