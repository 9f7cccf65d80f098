/*
 * Samples on their way from handlers to the writer: a lock-free ring of variable-length records in
 * fixed memory. Any number of handlers claim and commit; one thread reads. A full ring refuses.
 *
 * A record is a header word and the sample, contiguous: at the end of the memory a padding record
 * fills up. The header is 0 until the record is whole (release), so the reader stops at a claim
 * that is not committed yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/walk.h"

#define RING_BYTES_DEFAULT (256u * 1024)
#define RING_BYTES_MIN	   (16u * 1024)
#define RING_BYTES_MAX	   (16u * 1024 * 1024)

struct ring_sample {
	uint64_t mono_ns; /* CLOCK_MONOTONIC; for a wait, its begin */
	uint64_t weight; /* in the unit of its event */
	uint32_t tid;
	uint32_t n_frames;
	const char *broken; /* NULL = reached the root */
	uint64_t virtual_id; /* the virtual thread that ran on it; 0 = none */
	/* its name, or the kernel's name of the thread; "" = known already, or none */
	char name[WALK_NAME_BYTES];
	/* LOCK and ALLOC; 0 in a CPU sample */
	uint64_t class_handle; /* for walker_resolve_class(); 0 = unknown */
	uint64_t size; /* ALLOC: bytes of the object; LOCK with WIRE_LOCK_SUM: how many waits */
	uint32_t identity, owner_tid; /* LOCK, as in wire_lock */
	uint32_t n_owner_frames; /* LOCK: number of the owner's frames, which follow the waiter's */
	/* LOCK: index in the table of waits; WALL: index + 1 in the table of threads */
	uint32_t slot;
	uint8_t event; /* enum wire_event, or RING_NAME */
	uint8_t wait, flags; /* LOCK, as in wire_lock */
	uint8_t status; /* OFFCPU: enum wire_offcpu_status */
	/* The trace id and the span id of the tracer's active span, each NUL-terminated. A push
	 * copies the text behind the frames. */
	uint16_t context_bytes; /* 0 = none */
	const char *context;
	struct walk_frame frames[]; /* leaf first */
};

/* Not an event, and not counted: frames[] holds the name of thread @tid, whose Thread.getId() is
 * virtual_id. */
#define RING_NAME WIRE_EVENT_COUNT

struct ring {
	uint8_t *mem;
	uint32_t size; /* power of two */
	uint64_t head; /* claimed up to here; never decreases */
	uint64_t tail; /* read up to here */
};

#define RING_HDR_BYTES	8u
#define RING_HDR_SAMPLE 1ull /* bits 8 and up hold the record's length */
#define RING_HDR_PAD	2ull

static inline uint64_t *ring_header(const struct ring *r, uint64_t pos)
{
	return (uint64_t *)(r->mem + (pos & (r->size - 1)));
}

#define RING_CONTEXT_BYTES (2 * (WIRE_TRACE_MAX + 1)) /* the longest text of a context */

int ring_init(struct ring *r, uint32_t bytes);
void ring_deinit(struct ring *r);

/* Handler: copies one sample in. false = full. */
bool ring_push_sig(struct ring *r, const struct ring_sample *head, const struct walk_frame *frames);
uint64_t ring_head_sig(const struct ring *r);

/* Reader: the oldest committed sample before position @end, or NULL. Valid until ring_pop(). */
const struct ring_sample *ring_peek(struct ring *r, uint64_t end);
void ring_pop(struct ring *r);
