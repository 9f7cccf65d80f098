/* See pauses.h. */
#include "agent/engine/pauses_priv.h"

struct pauses pauses_sig;

static void pauses_note_sig(const struct safepoint *s)
{
	struct pauses *p = &pauses_sig;
	uint64_t head = p->head;

	if (s->number <= p->number)
		return;
	p->skipped += s->number - p->number - 1;
	p->number = s->number;
	__atomic_store_n(&p->seen_ns, s->end_ns, __ATOMIC_RELAXED);
	if (head - __atomic_load_n(&p->tail, __ATOMIC_ACQUIRE) == PAUSES_KEPT)
		return; /* the reader sees the gap in the numbers */
	p->ring[head & (PAUSES_KEPT - 1)] = *s;
	__atomic_store_n(&p->head, head + 1, __ATOMIC_RELEASE);
}

bool pauses_is_new_sig(void)
{
	struct pauses *p = &pauses_sig;
	uint64_t end_ns = __atomic_load_n(&p->on, __ATOMIC_ACQUIRE) ? safepoints_end_sig() : 0;

	return end_ns && end_ns != __atomic_load_n(&p->seen_ns, __ATOMIC_RELAXED);
}

void pauses_check_sig(void)
{
	struct pauses *p = &pauses_sig;
	struct safepoint s;
	uint64_t end_ns;

	if (!__atomic_load_n(&p->on, __ATOMIC_ACQUIRE))
		return;
	end_ns = safepoints_end_sig();
	if (!end_ns || end_ns == __atomic_load_n(&p->seen_ns, __ATOMIC_RELAXED) ||
	    __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE))
		return;
	if (safepoints_last_sig(&s))
		pauses_note_sig(&s);
	__atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}
