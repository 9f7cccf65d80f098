/*
 * From an application thread into the ring. Exactly one of pushed and drop[cause] is added to for
 * every event counted in taken, as in engine/cpu_timer_sig.c. Buffers for stacks are few: more
 * threads at once in the microseconds of a walk than there are = drop.no_scratch.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "agent/events/events.h"
#include "agent/events/thread_name.h"
#include "agent/events/virtual_name.h"
#include "agent/walker/java_thread.h"
#include "agent/walker/walker.h"

#define BUFFERS	    16
#define COST_NS_MAX 20000 /* longer: the thread had lost its CPU */

static struct {
	uint32_t busy;
	struct walk_frame *frames; /* WALK_FRAMES_MAX */
} buffers[BUFFERS];

int events_push_init(void)
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

void events_push_free(void)
{
	if (!buffers[0].frames)
		return;
	munmap(buffers[0].frames, BUFFERS * WALK_FRAMES_MAX * sizeof(struct walk_frame));
	for (int i = 0; i < BUFFERS; i++)
		buffers[i].frames = NULL;
}

/* Of each buffer a page, as stacks are seldom deeper than that. */
uint64_t events_push_bytes(void)
{
	return buffers[0].frames ? BUFFERS * 4096ull : 0;
}

int events_frames(struct walk_frame **ret)
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

void events_frames_done(int buffer)
{
	__atomic_store_n(&buffers[buffer].busy, 0, __ATOMIC_RELEASE);
}

static void push_add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_SEQ_CST);
}

static void push_drop(struct event_books *books, enum wire_drop cause, uint64_t weight)
{
	push_add(&books->drop[cause].weight, weight);
	push_add(&books->drop[cause].n, 1);
}

static void wake_writer(void)
{
	uint64_t one = 1;

	/* what was added to the books came before it: the writer sees that, or we see it idle */
	if (__atomic_load_n(&agent.writer_idle, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&agent.writer_idle, 0, __ATOMIC_SEQ_CST) &&
	    write(agent.wake_fd, &one, sizeof(one)) < 0)
		return; /* it also wakes by itself after some seconds */
}

static bool into_ring(struct event_books *books, const struct ring_sample *head,
		      const struct walk_frame *frames)
{
	if (!ring_push_sig(&agent.ring, head, frames)) {
		push_drop(books, WIRE_DROP_RING_FULL, head->weight);
		return false;
	}
	push_add(&books->pushed_weight, head->weight);
	push_add(&books->pushed, 1);
	wake_writer();
	return true;
}

bool events_enter(enum wire_event event)
{
	__atomic_fetch_add(&events.inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&events.on, __ATOMIC_SEQ_CST) & 1u << event)
		return true;
	events_leave();
	return false;
}

void events_leave(void)
{
	__atomic_fetch_sub(&events.inside, 1, __ATOMIC_SEQ_CST);
}

static bool push_enter(const struct ring_sample *head)
{
	struct event_books *books = &agent.books.of[head->event];

	if (!events_enter((enum wire_event)head->event))
		return false;
	/* the number first: whoever copies the books in between sees that they are not settled */
	push_add(&books->taken, 1);
	push_add(&books->taken_weight, head->weight);
	return true;
}

bool events_push_name(const struct ring_sample *head, const struct walk_frame *text)
{
	bool pushed = false;

	__atomic_fetch_add(&events.inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&events.on, __ATOMIC_SEQ_CST))
		pushed = ring_push_sig(&agent.ring, head, text);
	events_leave();
	return pushed;
}

bool events_push_frames(struct ring_sample *head, const struct walk_frame *frames)
{
	bool pushed;

	if (!push_enter(head))
		return false;
	pushed = into_ring(&agent.books.of[head->event], head, frames);
	events_leave();
	return pushed;
}

/* The full name of who waits: of a virtual thread, where the one in the sample may be cut. */
static void push_say_name(const struct ring_sample *head, uint64_t java_thread)
{
	uint32_t number = head->tid;

	if (head->virtual_id) {
		if (strlen(head->name) < WALK_NAME_WHOLE)
			return;
		number = WIRE_VIRTUAL_TID | (uint32_t)(head->virtual_id & (WIRE_VIRTUAL_TID - 1));
	}
	thread_name_self(java_thread, number);
}

static bool push_with_stack(struct event_books *books, struct ring_sample *head,
			    uint64_t java_thread)
{
	struct walk walk;
	bool pushed;
	int buffer;

	buffer = events_frames(&walk.frames);
	if (buffer < 0) {
		push_drop(books, WIRE_DROP_NO_SCRATCH, head->weight);
		return false;
	}
	virtual_mend();
	walk_anchor_sig(&walk, java_thread);
	head->tid = java_thread ? java_thread_tid_sig(java_thread) : 0;
	if (!head->tid)
		head->tid = thread_id();
	head->n_frames = walk.n;
	head->n_owner_frames = 0;
	head->broken = walk.broken;
	virtual_identity(head);
	push_say_name(head, java_thread);
	pushed = into_ring(books, head, walk.frames);
	events_frames_done(buffer);
	return pushed;
}

bool events_push(struct ring_sample *head, uint64_t java_thread)
{
	struct event_books *books = &agent.books.of[head->event];
	uint64_t began_ns, took_ns;
	bool pushed;

	if (!push_enter(head))
		return false;
	began_ns = mono_ns();
	pushed = push_with_stack(books, head, java_thread);
	took_ns = mono_ns() - began_ns;
	push_add(&books->cost_ns, took_ns < COST_NS_MAX ? took_ns : COST_NS_MAX);
	events_leave();
	return pushed;
}
