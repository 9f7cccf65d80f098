/* All sources of events together (base/events.h): START's `events` says which are on. Agent's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/events.h"

/* From begin() on: what the owner should know now, as *note of begin(). */
void sources_note(const struct events_source *source, const char *note);
/* A session is new: its reader knows no note yet. */
void sources_new_reader(void);
/* On and off as @start says; notes are written. */
void sources_begin(const struct wire_start *start);
/* Everything off and put back. false = a thread of the application hangs inside. */
bool sources_end(void);
void sources_tick(uint64_t now_ns);
uint64_t sources_next_ns(void); /* when sources_tick() has something to do */
uint64_t sources_bytes(void);
