/*
 * How long a receiver waits between two reads of its pipe. Each message wakes the daemon: so
 * receivers wait and gather, longer when many JVMs are busy. When a client follows the JVM's
 * events, they are passed on at once. docs/decisions/0008.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct target;
struct targets;

/* One target's part. */
struct target_gathering {
	bool followed; /* see target_follow() */
	unsigned messages; /* with events, in the current second */
	uint32_t sent_ms; /* last sent to its receiver; 0 at first */
};

/* How long all receivers gather from now on, ms. @now_ms: how long they do now, 0 at first; @busy:
 * number of busy targets. */
uint32_t gathering_choose(uint32_t now_ms, unsigned busy);

void gathering_begin(struct target *t); /* a receiver was started */
void gathering_on_message(struct target *t);
void gathering_on_second(struct targets *table);
