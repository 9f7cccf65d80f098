/*
 * See push.h. Buffers for stacks are few: an event that finds all of them in use, in the
 * microseconds of a walk each, is dropped as no_scratch.
 */
#include "agent/events/push.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "agent/base/producer.h"
#include "agent/engine/pauses.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/virtual_name.h"
#include "agent/trace/trace.h"
#include "agent/walker/walker.h"

#define BUFFERS	    16
#define COST_NS_MAX 20000 /* the cap of one event's cost: beyond it the thread had lost its CPU */

static struct {
	uint32_t busy;
	struct walk_frame *frames; /* WALK_FRAMES_MAX */
} buffers[BUFFERS];

int push_init(void)
{
	const size_t bytes = WALK_FRAMES_MAX * sizeof(struct walk_frame);
	uint8_t *frames;

	if (buffers[0].frames)
		return 0;
	frames = mmap(NULL, BUFFERS * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (frames == MAP_FAILED)
		return -ENOMEM;
	for (int i = 0; i < BUFFERS; i++)
		buffers[i].frames = (struct walk_frame *)(frames + (size_t)i * bytes);
	return 0;
}

void push_free(void)
{
	if (!buffers[0].frames)
		return;
	munmap(buffers[0].frames, BUFFERS * WALK_FRAMES_MAX * sizeof(struct walk_frame));
	for (int i = 0; i < BUFFERS; i++)
		buffers[i].frames = NULL;
}

/* Counts one page of each buffer, as stacks are seldom deeper than that. */
uint64_t push_bytes(void)
{
	return buffers[0].frames ? BUFFERS * 4096ull : 0;
}

int push_buffer(struct walk_frame **ret)
{
	for (int i = 0; i < BUFFERS; i++) {
		uint32_t idle = 0;

		if (__atomic_compare_exchange_n(&buffers[i].busy, &idle, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			*ret = buffers[i].frames;
			return i;
		}
	}
	return -1;
}

void push_buffer_done(int buffer)
{
	__atomic_store_n(&buffers[buffer].busy, 0, __ATOMIC_RELEASE);
}

/* Sends the thread's full name; for a virtual thread only if the name in the sample may be cut. */
static void push_send_name(const struct ring_sample *head, uint64_t java_thread)
{
	uint32_t number = head->tid;

	if (head->virtual_id) {
		if (strlen(head->name) < WALK_NAME_WHOLE)
			return;
		number = walk_virtual_number(head->virtual_id);
	}
	thread_name_self(java_thread, number);
}

static bool push_with_stack(struct ring_sample *head, uint64_t java_thread)
{
	char context[RING_CONTEXT_BYTES];
	struct walk walk;
	bool pushed;
	int buffer;

	buffer = push_buffer(&walk.frames);
	if (buffer < 0) {
		producer_drop_sig(head, WIRE_DROP_NO_SCRATCH);
		return false;
	}
	virtual_heal();
	walk_anchor_sig(&walk, java_thread);
	head->tid = java_thread ? java_thread_tid_sig(java_thread) : 0;
	if (!head->tid)
		head->tid = thread_id();
	head->n_frames = walk.n;
	head->n_owner_frames = 0;
	head->broken = walk.broken;
	trace_into_sig(java_thread, head, context);
	if (!head->virtual_id)
		virtual_identity(head);
	push_send_name(head, java_thread);
	pushed = producer_put_sig(head, walk.frames);
	/* the JVM may still be writing down a safepoint that held this thread, so this is no time
	 * to read it */
	if (pushed)
		producer_wake_sig(pauses_is_new_sig());
	push_buffer_done(buffer);
	return pushed;
}

bool push_event(struct ring_sample *head, uint64_t java_thread)
{
	uint64_t began_ns, took_ns;
	bool pushed;

	if (!events_enter((enum wire_event)head->event))
		return false;
	producer_take_sig(head);
	began_ns = mono_ns();
	pushed = push_with_stack(head, java_thread);
	took_ns = mono_ns() - began_ns;
	__atomic_fetch_add(&agent.counters.of[head->event].cost_ns,
			   took_ns < COST_NS_MAX ? took_ns : COST_NS_MAX, __ATOMIC_SEQ_CST);
	events_leave();
	return pushed;
}
