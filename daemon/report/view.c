/* See view.h. */
#include "daemon/report/view.h"

#include <stdio.h>
#include <string.h>

#define MS  1e6
#define KIB 1024.0

struct report_view report_view_of(const struct profile *p, enum wire_event event)
{
	struct report_view v = { .mean = (double)p->interval[event] };

	for (uint32_t i = 0; i < p->n_rows; i++) {
		if (p->rows[i].event != event)
			continue;
		v.samples += p->rows[i].samples;
		v.weight += p->rows[i].weight;
	}
	if (v.samples)
		v.mean = (double)v.weight / (double)v.samples;
	if (event != WIRE_EVENT_CPU || p->cpu_unknown)
		return v;
	v.process_cpu_ns = profile_cpu_ns(p);
	if (v.process_cpu_ns)
		v.coverage =
			(double)p->accounts.of[event].delivered_weight / (double)v.process_cpu_ns;
	return v;
}

const char *report_sum_text(const struct profile *p, enum wire_event event, char *buf, size_t size)
{
	const struct report_event *e = &report_events[event];
	struct report_view v = report_view_of(p, event);

	snprintf(buf, size, "%.3f %s of %s", (double)v.weight / e->large_size, e->large, e->of);
	return buf;
}

/* Writes "3 samples" or "1 wait". */
static size_t view_put_count(char *buf, size_t size, uint64_t n, enum wire_event event)
{
	const char *samples = report_events[event].samples;

	return (size_t)snprintf(buf, size, "%llu %.*s", (unsigned long long)n,
				(int)strlen(samples) - (n == 1), samples);
}

const char *report_rate_text(const struct profile *p, enum wire_event event, char *buf, size_t size)
{
	struct report_view v = report_view_of(p, event);
	size_t n = view_put_count(buf, size, v.samples, event);

	if (event == WIRE_EVENT_LOCK && p->interval[event])
		n += (size_t)snprintf(buf + n, size - n, " of %.3g ms and more",
				      (double)p->interval[event] / MS);
	if (v.samples && event == WIRE_EVENT_ALLOC)
		n += (size_t)snprintf(buf + n, size - n, ", mean interval %.4g KiB", v.mean / KIB);
	else if (v.samples)
		n += (size_t)snprintf(buf + n, size - n, ", mean %s %.3g ms",
				      event == WIRE_EVENT_LOCK ? "wait" : "interval", v.mean / MS);
	if (v.process_cpu_ns)
		snprintf(buf + n, size - n, ", coverage %.1f %% of the %.3f s used",
			 100 * v.coverage, (double)v.process_cpu_ns / 1e9);
	return buf;
}

/* Writes "12 samples of other threads, 0.120 s in all, not shown"; @size is always enough. */
static size_t view_put_left_out(char *buf, size_t size, enum wire_event event,
				const struct profile_left_out *out, const char *of, const char *how)
{
	const struct report_event *e = &report_events[event];
	size_t n;

	if (!out->samples)
		return 0;
	n = view_put_count(buf, size, out->samples, event);
	return n + (size_t)snprintf(buf + n, size - n, "%s, %.3f %s in all, %s\n", of,
				    (double)out->weight / e->large_size, e->large, how);
}

const char *report_absent_text(const struct profile *p, enum wire_event event, char *buf,
			       size_t size)
{
	size_t n = 0;

	*buf = '\0';
	if (event == WIRE_EVENT_LOCK && p->accounts.short_waits)
		n = (size_t)snprintf(
			buf, size, "%llu wait%s below %.3g ms, %.3f s in all, not shown\n",
			(unsigned long long)p->accounts.short_waits,
			p->accounts.short_waits == 1 ? "" : "s", (double)p->interval[event] / MS,
			(double)p->accounts.short_waits_ns / 1e9);
	if (event == WIRE_EVENT_OFFCPU && p->interval[event])
		n = (size_t)snprintf(
			buf, size,
			"times off the CPU below %.3g ms may be missing; kindling threads adds them up\n",
			(double)p->interval[event] / MS);
	n += view_put_left_out(buf + n, size - n, event, &p->idle_left_out[event],
			       " of threads that were idle", "not shown; --idle shows them");
	n += view_put_left_out(buf + n, size - n, event, &p->threads_left_out[event],
			       " of other threads", "not shown");
	n += view_put_left_out(buf + n, size - n, event, &p->rows_left_out[event], "",
			       "left out by --include or --exclude");
	if (p->accounts.of[event].no_ids && n < size) {
		n += view_put_count(buf + n, size - n, p->accounts.of[event].no_ids, event);
		snprintf(buf + n, size - n,
			 " without their trace ids, because there were too many spans\n");
	}
	return buf;
}

const char *report_process_note(const struct profile *p, uint32_t process, enum wire_event event)
{
	static const char *const of_offcpu[] = { PROFILE_NOTE_OFFCPU, PROFILE_NOTE_SPARED,
						 PROFILE_NOTE_QUEUED, PROFILE_NOTE_SPARED_QUEUED };
	const char *note = p->strings[p->processes[process].note];
	bool is_offcpu = false;

	for (size_t i = 0; i < ARRAY_SIZE(of_offcpu); i++)
		is_offcpu |= strcmp(note, of_offcpu[i]) == 0;

	return event == (is_offcpu ? WIRE_EVENT_OFFCPU : WIRE_EVENT_CPU) ? note : "";
}

static bool view_was_noted(const struct profile *p, uint32_t process)
{
	for (uint32_t i = 0; i < process; i++)
		if (p->processes[i].note == p->processes[process].note)
			return true;
	return false;
}

const char *report_note_text(const struct profile *p, enum wire_event event, char *buf, size_t size)
{
	size_t n = 0;

	*buf = '\0';
	for (uint32_t i = 0; i < p->n_processes && n < size; i++) {
		const char *note = report_process_note(p, i, event);

		if (*note && !view_was_noted(p, i))
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "; " : "", note);
	}
	return buf;
}
