/* See producer.h. */
#include "agent/base/producer.h"

#include <unistd.h>

static void producer_add_sig(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_SEQ_CST);
}

/* The number is counted first, so that a copy of the counters made in between shows that they are
 * not consistent. */
void producer_take_sig(const struct ring_sample *s)
{
	struct event_counters *counters = &agent.counters.of[s->event];

	producer_add_sig(&counters->taken, 1);
	producer_add_sig(&counters->taken_weight, s->weight);
}

void producer_drop_sig(const struct ring_sample *s, enum wire_drop cause)
{
	struct event_counters *counters = &agent.counters.of[s->event];

	producer_add_sig(&counters->drop[cause].weight, s->weight);
	producer_add_sig(&counters->drop[cause].n, 1);
}

bool producer_put_sig(const struct ring_sample *s, const struct walk_frame *frames)
{
	struct event_counters *counters = &agent.counters.of[s->event];

	if (!ring_push_sig(&agent.ring, s, frames)) {
		producer_drop_sig(s, WIRE_DROP_RING_FULL);
		return false;
	}
	producer_add_sig(&counters->pushed_weight, s->weight);
	producer_add_sig(&counters->pushed, 1);
	return true;
}

/* A resting writer is woken when a quarter of the ring is full. */
static bool producer_ring_fills_sig(const struct ring *r)
{
	uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_RELAXED);

	return ring_head_sig(r) - tail > r->size / 4;
}

/* The counters were changed before this load, so either the writer sees that, or this thread sees
 * the writer idle. */
void producer_wake_sig(bool urgent)
{
	uint32_t state = __atomic_load_n(&agent.writer_idle, __ATOMIC_SEQ_CST);
	uint64_t one = 1;

	if (state == WRITER_WORKS ||
	    (state == WRITER_RESTS && !urgent && !producer_ring_fills_sig(&agent.ring)))
		return;
	if (__atomic_exchange_n(&agent.writer_idle, WRITER_WORKS, __ATOMIC_SEQ_CST) == WRITER_WORKS)
		return;
	if (write(agent.wake_fd, &one, sizeof(one)) < 0)
		return; /* the writer also wakes up by itself after some seconds */
}
