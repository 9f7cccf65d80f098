/* See pauses.h: the agent's thread. */
#include "agent/engine/pauses_priv.h"

#include "agent/base/clock.h"

#define LOOK_NS	 (10 * NS_PER_MS)
#define AFTER_NS (2 * NS_PER_S) /* so long after one was missed */

static struct {
	uint64_t skipped; /* as of the last look */
	uint64_t next_ns, until_ns;
} looks = { .next_ns = UINT64_MAX };

bool pauses_begin(uint64_t *ret_number)
{
	struct pauses *p = &pauses_sig;

	if (!safepoints_init())
		return false;
	__atomic_store_n(&p->on, 0, __ATOMIC_SEQ_CST);
	/* a handler may be at it: it ends, and its note is as good as any */
	p->number = __atomic_load_n(safepoints_at_sig.counter, __ATOMIC_ACQUIRE) / 2;
	p->seen_ns = __atomic_load_n(safepoints_at_sig.end_ns, __ATOMIC_ACQUIRE);
	p->tail = p->head;
	looks.skipped = p->skipped;
	looks.next_ns = UINT64_MAX;
	*ret_number = p->number;
	__atomic_store_n(&p->on, 1, __ATOMIC_RELEASE);
	return true;
}

void pauses_end(void)
{
	__atomic_store_n(&pauses_sig.on, 0, __ATOMIC_SEQ_CST);
	looks.next_ns = UINT64_MAX;
}

bool pauses_are_on(void)
{
	return pauses_sig.on;
}

void pauses_tick(uint64_t now_ns)
{
	if (!pauses_sig.on)
		return;
	pauses_look_sig();
	if (pauses_sig.skipped != looks.skipped)
		looks.until_ns = now_ns + AFTER_NS;
	looks.skipped = pauses_sig.skipped;
	looks.next_ns = now_ns < looks.until_ns ? now_ns + LOOK_NS : UINT64_MAX;
}

uint64_t pauses_next_ns(void)
{
	return looks.next_ns;
}

bool pauses_are_many(void)
{
	return pauses_sig.head - pauses_sig.tail > PAUSES_KEPT / 2;
}

bool pauses_take(struct safepoint *ret)
{
	struct pauses *p = &pauses_sig;

	if (__atomic_load_n(&p->head, __ATOMIC_ACQUIRE) == p->tail)
		return false;
	*ret = p->ring[p->tail & (PAUSES_KEPT - 1)];
	__atomic_store_n(&p->tail, p->tail + 1, __ATOMIC_RELEASE);
	return true;
}
