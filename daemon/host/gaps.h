/*
 * What processes did between two daemons. For each one that is sampled the file "sampled" in the
 * state directory has a line, written anew every second: until when that was so, and how much CPU
 * time it had used by then. The next daemon books what it used since then as not sampled, however
 * the one before has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/mem.h"

/* Longer than this the daemon was not restarted but switched off, and nothing is booked. */
#define GAPS_MAX_NS (300 * 1000000000ull)

/* A process when it was sampled last. */
struct gaps_last {
	pid_t pid;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t cpu_ns; /* of its life */
	uint64_t mono_ns; /* CLOCK_MONOTONIC, which goes on from one daemon to the next */
};

struct gaps;

/* @dir: the state directory. What is of another boot, or of a process that has ended, is dropped. 0
 * or -ENOMEM. */
int gaps_open(const char *dir, struct gaps **ret);
struct gaps *gaps_free(struct gaps *g); /* the file stays; NULL is fine */
/* It is sampled again: true = a daemon before this one has sampled it, not longer than GAPS_MAX_NS
 * ago. Told once. */
bool gaps_take(struct gaps *g, pid_t pid, uint64_t start_time, struct gaps_last *ret);
/* The file anew: those that were given since gaps_begin(), and those of the daemon before that are
 * not sampled yet. 0 or -errno; what it was stays then, or is cut short. */
void gaps_begin(struct gaps *g);
void gaps_add(struct gaps *g, const struct gaps_last *last);
int gaps_write(struct gaps *g);
