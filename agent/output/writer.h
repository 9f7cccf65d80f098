/*
 * Takes records from the ring to the pipe: encodes them with a dictionary, in frames of at most
 * 4,096 bytes, each written whole or not at all (pipe(7)). Only the agent's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/agent.h"

enum writer_result {
	WRITER_OK,
	WRITER_FULL, /* the pipe had no room: the pending frames are dropped and counted */
	WRITER_GONE, /* there is no reader, or the descriptor is no longer our FIFO */
};

/* Registers the functions of outlet.h. May be called again. */
void writer_register(void);
/* A session begins on @fd, which is borrowed: frame numbers start at 1, the dictionary is empty. */
void writer_begin(int fd);
/* Encodes all samples before ring position @end; UINT64_MAX = all that are complete. */
enum writer_result writer_drain(uint64_t end);
/* Encodes one record that is not counted: an open wait, or its end. */
enum writer_result writer_uncounted(const struct ring_sample *s);
/* Sends a wall-clock sample with the stack of an earlier one of the current epoch, and with its
 * context if that is still valid: its id has got no other meaning since @generation. */
void writer_repeat_wall_sample(const struct wire_sample *record, uint32_t generation);
/* The current epoch, which changes when all ids become invalid; 0 = no id is valid now. */
uint32_t writer_epoch(void);
/* Writes the pending frames. */
enum writer_result writer_flush(void);
/* Writes the pending frames, then a consistent LEDGER. WRITER_FULL = not possible now. */
enum writer_result writer_ledger(void);
enum writer_result writer_hello(const struct wire_hello *hello);
enum writer_result writer_fault(enum wire_type type, uint32_t code, const char *step,
				const char *what);
/* Queues a THREAD record, which is written before the next samples. */
void writer_thread(const struct wire_thread *thread);
/* Queues a thread's state. If it is dropped, thread_states_forget() is called. */
void writer_state(const struct wire_state *state);
/* Queues a group of virtual threads; fills in its ids. @container, @class_name: "" = none. */
void writer_virtual(struct wire_virtual *group, const char *container, const char *class_name);
/* Queues a safepoint; fills in its id. @operation: "" = unknown. If it is dropped, the gap in the
 * numbers shows that. */
void writer_pause(struct wire_pause *pause, const char *operation);
/* There is no reader: drops everything pending and in the ring as drop.no_reader. */
void writer_discard(void);
void writer_free(void);
uint64_t writer_bytes(void); /* all memory of the agent */
uint64_t writer_dictionary_bytes(void);
/* The time since which the pipe has been full, CLOCK_MONOTONIC in ns; 0 = it is not full. */
uint64_t writer_full_since(void);
struct wire_str wire_text(const char *s);
