/* See events.h. */
#include "agent/base/events.h"

#include <time.h>

#define LEAVE_TRIES 5000 /* tries, each after 100 us */

struct events events;

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

bool events_wait_until_left(void)
{
	struct timespec pause = { 0, 100000 };

	for (int i = 0; i < LEAVE_TRIES; i++) {
		if (__atomic_load_n(&events.inside, __ATOMIC_SEQ_CST) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}
