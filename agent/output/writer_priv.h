/*
 * Inside the writer: writer.c (the pipe: frames, epochs, the ledger), writer_define.c (ids for what
 * a sample refers to), writer_contexts.c (ids for what tracers had under way), writer_events.c
 * (from the ring into frames). Only the agent's thread.
 */
#pragma once

#include "agent/base/dict.h"
#include "agent/output/writer.h"

/* Frames being filled, in the order in which they have to be written: definitions first. */
enum pending {
	PENDING_STRING,
	PENDING_MAPPING,
	PENDING_METHOD,
	PENDING_NODE,
	PENDING_CONTEXT,
	PENDING_THREAD,
	PENDING_STATE,
	PENDING_VIRTUAL,
	PENDING_CPU,
	PENDING_OFFCPU, /* before LOCK: a wait for a lock is in both, and the daemon joins them */
	PENDING_LOCK,
	PENDING_ALLOC,
	PENDING_WALL,
	PENDING_COUNT
};

/* Where an event's records go. */
extern const enum pending writer_pending_of[WIRE_EVENT_COUNT];

struct writer {
	int fd;
	uint64_t inode, device; /* of the FIFO: the application may close our number and reuse it */
	uint64_t sequence;
	struct dict strings, methods, mappings, nodes;
	struct wire_writer frames[PENDING_COUNT];
	uint8_t bytes[PENDING_COUNT][WIRE_FRAME_MAX];
	struct {
		uint64_t n, weight;
	} waiting[WIRE_EVENT_COUNT]; /* in the pending frames */
	uint32_t epoch; /* of ids; counts on from session to session */
	uint32_t batch; /* counts on when the pending frames begin anew */
	bool begun; /* frames[] are set up */
	bool torn; /* a definition was lost: no sample may be sent before a RESET */
	bool dict_full; /* something of the current stack found no room */
	bool gone; /* no reader, for good */
	uint64_t full_since_ns; /* CLOCK_MONOTONIC; 0 = the pipe is not full */
};
extern struct writer writer;

/*
 * Puts a record into its frame; when it is full, flushes all and puts it into the next one. @record
 * was given an id in this epoch; if the flush lost definitions the epoch is torn and the caller's
 * sample is dropped.
 */
#define PUT(which, put, record)                \
	(put(&writer.frames[which], record) || \
	 (writer_flush() == WRITER_OK && put(&writer.frames[which], record)))

/* All ids mean something else from now on; what is pending still belongs to the old epoch. */
enum writer_result writer_new_epoch(void);

/* What a sample's record refers to. */
struct writer_ids {
	uint32_t node, owner_node, class_id, context; /* 0 = none */
};
/* false = the dictionary is full or torn: what was defined on the way is void. */
bool writer_define(const struct ring_sample *s, struct writer_ids *ret);

/* The id of a context, as ring_sample has it; 0 = none. May flush to give an old id a new meaning.
 */
uint32_t writer_context_id(const char *text, uint32_t bytes);
/* Changes with each meaning that is given. */
uint32_t writer_context_generation(void);
/* A record that ends with @id is in the pending frames. */
void writer_context_used(uint32_t id);
/* Does @id mean what it meant at that generation? */
bool writer_context_is_current(uint32_t id, uint32_t generation);
void writer_contexts_forget(void);
void writer_contexts_free(void);
uint64_t writer_contexts_bytes(void);
/* 0 = no room (writer.dict_full). Longer ones are cut to WIRE_STRING_MAX bytes. */
uint32_t writer_string_id(const char *s);
