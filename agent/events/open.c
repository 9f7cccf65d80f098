/* See open.h. */
#include "agent/events/open.h"

#include "agent/events/waits.h"

uint64_t open_waits_look(uint64_t now_ns)
{
	(void)now_ns;
	return UINT64_MAX;
}

void open_wait_ended(const struct ring_sample *s)
{
	(void)s;
}

void open_waits_sent(void)
{
}

void open_waits_lost(void)
{
}
