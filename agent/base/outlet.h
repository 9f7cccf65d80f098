/*
 * What rooms below output/ send to the reader at once, past the ring: they know the way out only as
 * these functions, which the session registers. All calls in the agent's thread, in a session.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"
#include "proto/wire.h"

struct outlet {
	/* A sentence for the owner, under @step; "" takes the last one back. false = not written.
	 */
	bool (*note)(const char *step, const char *text);
	/* Sends an event that is not counted: a wait in progress, or its end. false = dropped. */
	bool (*uncounted)(const struct ring_sample *s);
	/* A wall-clock sample with the stack of an earlier one, of the epoch that is now;
	 * @generation: as wall_written() was told. */
	void (*wall_repeat_sample)(const struct wire_sample *record, uint32_t generation);
	/* Changes when all ids are forgotten; 0 = no id is good now. */
	uint32_t (*epoch)(void);
	/* The full name of a thread, by its number on the wire. @id: Thread.getId(). */
	void (*thread_named)(uint32_t number, uint64_t id, const char *name);
	/* A pass over all Java threads: their names are sent where they are new. */
	void (*name_threads)(void);
};

extern const struct outlet *outlet; /* NULL before the first session */
