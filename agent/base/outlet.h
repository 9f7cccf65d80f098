/*
 * Functions by which rooms below output/ send something to the reader at once, not through the
 * ring. The session registers them. All calls are made in the agent's thread, during a session.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"
#include "proto/wire.h"

struct outlet {
	/* Sends a sentence for the owner, under @step; "" withdraws the last one. false = not
	 * written. */
	bool (*note)(const char *step, const char *text);
	/* Sends an event that is not counted: a wait in progress, or its end. false = dropped. */
	bool (*uncounted)(const struct ring_sample *s);
	/* Sends a wall-clock sample with the stack of an earlier one of the current epoch;
	 * @generation: as passed to wall_written(). */
	void (*wall_repeat_sample)(const struct wire_sample *record, uint32_t generation);
	/* The current epoch, which changes when all ids become invalid; 0 = no id is valid now. */
	uint32_t (*epoch)(void);
	/* Sends the full name of the thread with @number on the wire. @id: Thread.getId(). */
	void (*thread_named)(uint32_t number, uint64_t id, const char *name);
	/* Makes a pass over all Java threads and sends names that are new. */
	void (*name_threads)(void);
};

extern const struct outlet *outlet; /* NULL before the first session */
