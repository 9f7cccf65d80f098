/*
 * From the ring to the pipe: dictionary encoding, frames of at most 4,096 bytes, each written whole
 * or not at all (pipe(7)). Only the agent's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/agent.h"

enum writer_result {
	WRITER_OK,
	WRITER_FULL, /* the pipe had no room: what was pending is dropped and counted */
	WRITER_GONE, /* no reader, or the descriptor is not our FIFO any more */
};

/* The rooms below may send what outlet.h lists. May be called again. */
void writer_register(void);
/* A session begins on @fd: sequence from 1, a fresh dictionary. */
void writer_begin(int fd);
/* Encode all samples before ring position @end (UINT64_MAX = all that are whole). */
enum writer_result writer_drain(uint64_t end);
/* Encode one record that is not counted: an open wait, or its end. */
enum writer_result writer_uncounted(const struct ring_sample *s);
/* A wall-clock sample with the stack of an earlier one, of the epoch that is now, and its context
 * if that has the same meaning as at @generation. */
void writer_repeat_wall_sample(const struct wire_sample *record, uint32_t generation);
/* Changes when all ids are forgotten; 0 = no id is good now. */
uint32_t writer_epoch(void);
/* Write what is pending. */
enum writer_result writer_flush(void);
/* Flush, and a consistent LEDGER. WRITER_FULL = not now. */
enum writer_result writer_ledger(void);
enum writer_result writer_hello(const struct wire_hello *hello);
enum writer_result writer_fault(enum wire_type type, uint32_t code, const char *step,
				const char *what);
/* Queue a THREAD record; it goes out before the next samples. */
void writer_thread(const struct wire_thread *thread);
/* Queue what threads do. A lost one is said to thread_states_forget(). */
void writer_state(const struct wire_state *state);
/* @container, @class_name: "" = none; their ids are filled in. */
void writer_virtual(struct wire_virtual *group, const char *container, const char *class_name);
/* No reader: everything in the ring and pending becomes drop.no_reader. */
void writer_discard(void);
void writer_free(void);
uint64_t writer_bytes(void); /* all memory of the agent */
uint64_t writer_dictionary_bytes(void);
/* since when the pipe has been full without a break, CLOCK_MONOTONIC; 0 = it is not */
uint64_t writer_full_since(void);
struct wire_str wire_text(const char *s);
