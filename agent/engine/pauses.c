/* See pauses.h: the functions for the agent's thread. */
#include "agent/engine/pauses_priv.h"

#include "agent/base/clock.h"

#define CHECK_NS (10 * NS_PER_MS)
/* The agent's thread checks for this time after it missed a safepoint. */
#define AFTER_NS (2 * NS_PER_S)

static struct {
	uint64_t skipped; /* number of missed safepoints at the last check */
	uint64_t next_ns, until_ns;
} pauses_check = { .next_ns = UINT64_MAX };

bool pauses_begin(uint64_t *ret_number)
{
	struct pauses *p = &pauses_sig;

	if (!safepoints_init())
		return false;
	__atomic_store_n(&p->on, 0, __ATOMIC_SEQ_CST);
	/* a handler may still be recording a safepoint; that does no harm */
	p->number = safepoints_number_sig();
	p->seen_ns = safepoints_end_sig();
	p->tail = p->head;
	pauses_check.skipped = p->skipped;
	pauses_check.next_ns = UINT64_MAX;
	*ret_number = p->number;
	__atomic_store_n(&p->on, 1, __ATOMIC_RELEASE);
	return true;
}

void pauses_end(void)
{
	__atomic_store_n(&pauses_sig.on, 0, __ATOMIC_SEQ_CST);
	pauses_check.next_ns = UINT64_MAX;
}

void pauses_tick(uint64_t now_ns)
{
	if (!pauses_sig.on)
		return;
	pauses_check_sig();
	if (pauses_sig.skipped != pauses_check.skipped)
		pauses_check.until_ns = now_ns + AFTER_NS;
	pauses_check.skipped = pauses_sig.skipped;
	pauses_check.next_ns = now_ns < pauses_check.until_ns ? now_ns + CHECK_NS : UINT64_MAX;
}

uint64_t pauses_next_ns(void)
{
	return pauses_check.next_ns;
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
