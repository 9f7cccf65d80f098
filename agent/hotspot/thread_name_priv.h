/* Shared by thread_name.c, which asks the JVM, and thread_name_sig.c, which reads memory. */
#pragma once

#include "agent/base/ring.h"
#include "agent/hotspot/thread_name.h"

#define THREAD_NAME_SENT_MAX 8192u /* threads that are remembered; power of two */

/* Where names are in memory. */
struct thread_name_layout {
	bool readable;
	/* a JavaThread refers to the Thread directly rather than by a handle */
	bool slot_is_object;
	int32_t eetop, object; /* offsets in a Thread; in a JavaThread */
	uint64_t string; /* Klass */
};
extern struct thread_name_layout thread_name_layout_sig;

/* A name in the ring; it takes the space of a sample's frames. */
union thread_name_text {
	char name[THREAD_NAME_BYTES];
	struct walk_frame frames[THREAD_NAME_BYTES / sizeof(struct walk_frame)];
};
_Static_assert(sizeof(union thread_name_text) == THREAD_NAME_BYTES, "whole frames");

/* The names that were reported: a mark for each thread, by number modulo THREAD_NAME_SENT_MAX. */
extern uint64_t thread_name_sent_sig[THREAD_NAME_SENT_MAX];

/* The head of the record of a name. */
struct ring_sample thread_name_head_sig(uint32_t number, uint64_t id,
					const union thread_name_text *text);
bool thread_name_was_sent_sig(uint32_t number, uint64_t id);
void thread_name_set_sent_sig(uint32_t number, uint64_t id);
void thread_name_unset_sent_sig(uint32_t number);
/* The Thread of a JavaThread, or the virtual one that runs on it; 0 = unknown. */
uint64_t thread_name_object_sig(uint64_t java_thread, bool is_virtual);
/* The arguments of thread_name_on(). true = *ret is the name, which was not reported yet. *ret_id:
 * 0 = it cannot be read now. */
bool thread_name_read_sig(uint64_t java_thread, uint64_t object, uint32_t number, uint64_t *ret_id,
			  union thread_name_text *ret);
