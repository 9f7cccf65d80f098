/*
 * The CPU time that processes used between two daemons. Every second the daemon rewrites the file
 * "sampled" in the state directory: one line for each process that is sampled, with the present
 * moment and the CPU time that the process has used so far. Whatever the process uses until the
 * next daemon samples it counts as not sampled, however this daemon ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/mem.h"

/* After a longer break the daemon was switched off, not restarted: nothing is counted. */
#define GAPS_MAX_NS (300 * 1000000000ull)

/* A process at the moment when it was last sampled. */
struct gaps_last {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t cpu_ns; /* since the process began */
	uint64_t mono_ns; /* CLOCK_MONOTONIC, which goes on from one daemon to the next */
	/* of an earlier gap that was counted but is not in the history yet: a daemon that reads
	 * this line must count it again */
	uint64_t owed_ns, owed_cpu_ns;
};

struct gaps;

/* Reads the file in @dir, the state directory, without lines of another boot or of processes
 * that have ended. 0 or -ENOMEM. */
int gaps_open(const char *dir, struct gaps **ret);
struct gaps *gaps_free(struct gaps *g); /* the file stays; @g may be NULL */
/* The process is sampled again: did the previous daemon sample it, at most GAPS_MAX_NS ago? True
 * only once. */
bool gaps_take(struct gaps *g, pid_t pid, uint64_t start_time, struct gaps_last *ret);
/* Rewrite the file: gaps_begin(), gaps_add() for each sampled process, gaps_write(). Processes
 * of the previous daemon that are not sampled yet keep their lines. 0 or -errno: then the old
 * content stays, or is cut off. */
void gaps_begin(struct gaps *g);
void gaps_add(struct gaps *g, const struct gaps_last *last);
int gaps_write(struct gaps *g);
