/* See producer.h: the functions for application threads. */
#include "agent/base/producer.h"

#include "agent/base/events.h"

bool producer_push(const struct ring_sample *head, const struct walk_frame *frames)
{
	bool pushed;

	if (!events_enter((enum wire_event)head->event))
		return false;
	producer_take_sig(head);
	pushed = producer_put_sig(head, frames);
	if (pushed)
		producer_wake_sig(true);
	events_leave();
	return pushed;
}

bool producer_push_name(const struct ring_sample *head, const struct walk_frame *text)
{
	bool pushed = false;

	__atomic_fetch_add(&events.inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&events.on, __ATOMIC_SEQ_CST))
		pushed = ring_push_sig(&agent.ring, head, text);
	events_leave();
	return pushed;
}
