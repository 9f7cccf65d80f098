/* All sources of events together (base/events.h); START's `events` selects which are on. Agent's
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/events.h"

/* Sends a NOTE of @source, as *note of begin(); at any time after begin(). */
void sources_note(const struct events_source *source, const char *note);
/* A new session: its reader has no notes yet. */
void sources_new_reader(void);
/* Switches sources on and off as @start asks, and sends their notes. */
void sources_begin(const struct wire_start *start);
/* Switches all sources off and undoes what they changed in the JVM. false = an application thread
 * hangs inside. */
bool sources_end(void);
void sources_tick(uint64_t now_ns);
uint64_t sources_next_ns(void); /* when sources_tick() must be called next */
uint64_t sources_bytes(void);
