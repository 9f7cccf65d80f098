/*
 * How long a receiver leaves its pipe alone after a read. Each read wakes the daemon, so where many
 * JVMs are busy the receivers gather what an agent says; where few are, or somebody follows one,
 * events are passed on at once. docs/decisions/0008.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct target;
struct targets;

/* Of one target. */
struct target_gathering {
	bool followed; /* target_follow() */
	unsigned messages; /* with events, in this second */
	uint32_t told_ms; /* the value last sent to its receiver; 0 at first */
};

/* How long all of them gather from now on, ms: @busy targets speak steadily, and it was @now_ms. */
uint32_t gathering_choose(uint32_t now_ms, unsigned busy);

void gathering_begin(struct target *t); /* a receiver begins */
void gathering_on_message(struct target *t);
void gathering_on_second(struct targets *table);
