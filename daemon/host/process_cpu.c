/*
 * The CPU time that processes use while they are sampled, with which reports compare their samples;
 * and the time that they used between two daemons, while they were not sampled (gaps.h). It is read
 * from the kernel, because what an agent claims about its own process cannot be trusted.
 */
#include "daemon/host/host_priv.h"

#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

/* After this time a gap is in a window of the history, and usually in the journal earlier. */
#define OWED_NS	    (20 * NS_PER_S)
#define HURRIES_MAX 30 /* tenths of a second, the time that the journal may take */

/* At the first sample: counts what the process has used since the previous daemon as not
 * sampled. false: there was no previous one. */
static bool process_cpu_count_gap(struct host *h, struct target *t, struct host_entry *e,
				  struct host_cpu *now)
{
	struct gaps_last last;

	if (!gaps_take(h->gaps, t->jvm.pid, t->jvm.start_time, &last) || now->ns < last.cpu_ns)
		return false;
	e->gap = (struct host_gap){ .ns = now->mono_ns - last.mono_ns + last.owed_ns,
				    .cpu_ns = now->ns - last.cpu_ns + last.owed_cpu_ns,
				    .until_real_ns = now->real_ns };
	e->gap_owed = true;
	now->sum_ns += e->gap.cpu_ns;
	/* belongs to this second: queries ask the store only for time before the live end, and
	 * the seconds before this one were the previous daemon's */
	live_add_cpu(e->source, e->gap.cpu_ns, now->real_ns, now->real_ns);
	target_missed(t, e->gap.cpu_ns);
	return true;
}

void host_take_cpu(struct host *h, struct target *t)
{
	struct host_entry *e = host_entry_of(h, t);
	struct host_cpu now = { .known = true,
				.real_ns = clock_real_ns(),
				.mono_ns = clock_mono_ns() };
	bool booked = false;

	if (!e)
		return;
	if (!clock_process_cpu_ns(t->jvm.pid, &now.ns)) {
		e->cpu.known = false;
		return;
	}
	now.sum_ns = e->cpu.sum_ns;
	/* less than before: the process is gone, and another one has its pid */
	if (e->cpu.known && now.ns > e->cpu.ns) {
		now.sum_ns += now.ns - e->cpu.ns;
		live_add_cpu(e->source, now.ns - e->cpu.ns, e->cpu.real_ns, now.real_ns);
	}
	if (!e->cpu.known)
		booked = process_cpu_count_gap(h, t, e, &now);
	e->cpu = now;
	/* a daemon that is killed before its first second has ended has sampled from here on */
	if (!booked)
		return;
	h->owes = true;
	h->hurries = 0;
	host_write_gaps(h);
}

void host_gaps_journaled(struct host *h, uint64_t until_real_ns)
{
	bool paid = false;

	if (!h->owes || !h->targets) /* the latter at the end of the daemon */
		return;
	h->owes = false;
	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct host_entry *e = t->userdata;

		if (!e || !e->gap_owed)
			continue;
		e->gap_owed = e->gap.until_real_ns >= until_real_ns;
		h->owes |= e->gap_owed;
		paid |= !e->gap_owed;
	}
	if (paid)
		host_write_gaps(h);
}

void host_gaps_hurry(struct host *h)
{
	if (!h->owes)
		return;
	host_take_cpu_of_all(h);
	host_write_gaps(h);
	if (++h->hurries == HURRIES_MAX)
		h->owes = false;
}

/* Is the gap not in the history yet? A clean shutdown writes all of the history anyway. */
static bool is_owed(const struct host *h, const struct host_entry *e)
{
	return e->gap_owed && !h->shutdown_by_mono_ns &&
	       clock_real_ns() - e->gap.until_real_ns < OWED_NS;
}

void host_take_cpu_of_all(struct host *h)
{
	for (struct target *t = targets_next(h->targets, NULL); t; t = targets_next(h->targets, t))
		if (t->state == TARGET_STREAMING)
			host_take_cpu(h, t);
}

void host_leave_cpu(struct host *h, struct target *t)
{
	struct host_entry *e = t->userdata;

	if (!e || !e->cpu.known)
		return;
	host_take_cpu(h, t);
	e->cpu.left = e->cpu.known && h->shutdown_by_mono_ns;
	e->cpu.known = false;
}

void host_write_gaps(struct host *h)
{
	int r;

	if (!h->gaps)
		return;
	gaps_begin(h->gaps);
	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		const struct host_entry *e = t->userdata;
		struct gaps_last last = { .pid = t->jvm.pid, .start_time = t->jvm.start_time };

		if (!e || !(e->cpu.known || e->cpu.left) || t->state == TARGET_GONE)
			continue;
		last.cpu_ns = e->cpu.ns;
		last.mono_ns = e->cpu.mono_ns;
		last.owed_ns = is_owed(h, e) ? e->gap.ns : 0;
		last.owed_cpu_ns = is_owed(h, e) ? e->gap.cpu_ns : 0;
		gaps_add(h->gaps, &last);
	}
	r = gaps_write(h->gaps);
	if (r < 0 && !h->gaps_failed)
		log_warn("host.sampled", "error=%s", log_str(strerror(-r)));
	h->gaps_failed = r < 0;
}

uint64_t host_cpu_ns(const struct target *t)
{
	const struct host_entry *e = t->userdata;

	return e ? e->cpu.sum_ns : 0;
}

const struct host_gap *host_gap_of(const struct target *t)
{
	const struct host_entry *e = t->userdata;

	return e && e->gap.ns ? &e->gap : NULL;
}
