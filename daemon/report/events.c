/* See events.h. */
#include "daemon/report/events.h"

#include <stdio.h>
#include <string.h>

#define MS  1e6
#define MIB 1048576.0

const struct report_event report_events[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = { "CPU", "ns", "s", 1e9, "samples" },
	[WIRE_EVENT_LOCK] = { "waiting", "ns", "s", 1e9, "waits" },
	[WIRE_EVENT_ALLOC] = { "allocation", "bytes", "MiB", MIB, "samples" },
	[WIRE_EVENT_WALL] = { "wall-clock time", "ns", "s", 1e9, "samples" },
};

static int event_by_name(const char *name, size_t len)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (strlen(wire_event_names[e]) == len &&
		    memcmp(wire_event_names[e], name, len) == 0)
			return e;
	return -1;
}

bool report_events_by_name(const char *list, unsigned *ret)
{
	unsigned events = 0;

	for (const char *s = list;; s++) {
		size_t len = strcspn(s, ",");
		int e = event_by_name(s, len);

		if (e < 0)
			return false;
		events |= 1u << e;
		s += len;
		if (!*s)
			break;
	}
	*ret = events;
	return true;
}

const char *report_events_list(unsigned events, char *buf, size_t size)
{
	size_t n = 0;

	*buf = '\0';
	for (int e = 0; e < WIRE_EVENT_COUNT && n < size; e++)
		if (events & 1u << e)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "," : "",
					      wire_event_names[e]);
	return buf;
}

enum wire_event report_event_of(unsigned events)
{
	unsigned known = events & ((1u << WIRE_EVENT_COUNT) - 1);

	return known ? (enum wire_event)__builtin_ctz(known) : WIRE_EVENT_CPU;
}

const char *report_rate_text(const struct profile *p, enum wire_event event, char *buf, size_t size)
{
	double interval = (double)p->interval[event];

	if (event == WIRE_EVENT_LOCK)
		snprintf(buf, size, "waits of %.3g ms and more", interval / MS);
	else if (event == WIRE_EVENT_ALLOC)
		snprintf(buf, size, "one sample per %.4g KiB", interval / 1024);
	else
		snprintf(buf, size, "one sample per %.3g ms", interval / MS);
	if (event != WIRE_EVENT_CPU && !p->interval[event])
		*buf = '\0';
	return buf;
}

const char *report_absent_text(const struct profile *p, enum wire_event event, char *buf,
			       size_t size)
{
	const struct report_event *e = &report_events[event];
	size_t n = 0;

	*buf = '\0';
	if (event == WIRE_EVENT_LOCK && p->books.short_waits)
		n = (size_t)snprintf(
			buf, size, "%llu wait%s below %.3g ms, %.3f s in all, not shown\n",
			(unsigned long long)p->books.short_waits,
			p->books.short_waits == 1 ? "" : "s", (double)p->interval[event] / MS,
			(double)p->books.short_waits_ns / 1e9);
	if (p->idle_left_out[event].samples && n < size)
		n += (size_t)snprintf(
			buf + n, size - n,
			"%llu %.*s of threads that were idle, %.3f %s in all, not shown; "
			"--idle shows them\n",
			(unsigned long long)p->idle_left_out[event].samples,
			(int)strlen(e->samples) - (p->idle_left_out[event].samples == 1),
			e->samples, (double)p->idle_left_out[event].weight / e->large_size,
			e->large);
	if (p->rows_left_out[event].samples && n < size)
		snprintf(buf + n, size - n,
			 "%llu %.*s, %.3f %s in all, left out by --include or --exclude\n",
			 (unsigned long long)p->rows_left_out[event].samples,
			 (int)strlen(e->samples) - (p->rows_left_out[event].samples == 1),
			 e->samples, (double)p->rows_left_out[event].weight / e->large_size,
			 e->large);
	return buf;
}
