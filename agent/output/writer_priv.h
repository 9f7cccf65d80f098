/*
 * Shared by the writer's files: writer.c (the pipe: frames, epochs, the ledger), writer_define.c
 * (ids for strings, methods, mappings and stacks), writer_contexts.c (ids for trace contexts),
 * writer_events.c (from the ring into frames). Only the agent's thread.
 */
#pragma once

#include "agent/base/dict.h"
#include "agent/output/writer.h"

/* The pending frames, in the order in which they must be written: definitions first. */
enum pending {
	PENDING_STRING,
	PENDING_MAPPING,
	PENDING_METHOD,
	PENDING_NODE,
	PENDING_CONTEXT,
	PENDING_THREAD,
	PENDING_STATE,
	PENDING_VIRTUAL,
	PENDING_PAUSE, /* before OFFCPU, whose reason it may be */
	PENDING_CPU,
	PENDING_OFFCPU, /* before LOCK: a wait for a lock is in both, and the daemon joins them */
	PENDING_LOCK,
	PENDING_ALLOC,
	PENDING_WALL,
	PENDING_COUNT
};

/* The frame of each event's records. */
extern const enum pending writer_pending_of[WIRE_EVENT_COUNT];

struct writer {
	int fd;
	/* identify the FIFO, to notice when the application closes our descriptor and its number is
	 * reused */
	uint64_t inode, device;
	uint64_t sequence;
	struct dict strings, methods, mappings, nodes;
	struct wire_writer frames[PENDING_COUNT];
	uint8_t bytes[PENDING_COUNT][WIRE_FRAME_MAX];
	struct {
		uint64_t n, weight;
	} waiting[WIRE_EVENT_COUNT]; /* events in the pending frames */
	uint32_t epoch; /* epoch of dictionary ids; counts on in a new session */
	uint32_t batch; /* changes when the pending frames are emptied */
	bool begun; /* frames[] are initialised */
	bool torn; /* a definition was lost: no sample may be sent before a RESET */
	bool dict_full; /* the dictionary had no room for a part of the current stack */
	bool gone; /* there will be no reader again in this session */
	uint64_t full_since_ns; /* CLOCK_MONOTONIC; 0 = the pipe is not full */
};
extern struct writer writer;

/*
 * Puts a record into its frame. If the frame is full, flushes all frames and puts the record into
 * the next one. If that flush lost definitions, the epoch is torn, and the caller's sample must be
 * dropped.
 */
#define PUT(which, put, record)                \
	(put(&writer.frames[which], record) || \
	 (writer_flush() == WRITER_OK && put(&writer.frames[which], record)))

/* Begins a new epoch: all ids become invalid. Pending records belong to the old epoch. */
enum writer_result writer_new_epoch(void);

/* The ids that a sample's record refers to. */
struct writer_ids {
	uint32_t node, owner_node, class_id, context; /* 0 = none */
};
/* false = the dictionary is full or torn; ids defined so far are void. */
bool writer_define(const struct ring_sample *s, struct writer_ids *ret);

/* Returns the id of a context, whose text is as in ring_sample; 0 = none. May flush, to give an old
 * id a new meaning. */
uint32_t writer_context_id(const char *text, uint32_t bytes);
/* Changes whenever an id gets a new meaning. */
uint32_t writer_context_generation(void);
/* A record that refers to @id is in the pending frames. */
void writer_context_used(uint32_t id);
/* Does @id still have the meaning that it had at @generation? */
bool writer_context_is_current(uint32_t id, uint32_t generation);
void writer_contexts_forget(void);
void writer_contexts_free(void);
uint64_t writer_contexts_bytes(void);
/* Returns the id of a string; 0 = no room (writer.dict_full). Longer strings are cut to
 * WIRE_STRING_MAX bytes. */
uint32_t writer_string_id(const char *s);
