/*
 * The CPU time that processes used while they were sampled, which reports hold their samples
 * against. It is read from the kernel: what an agent says of its own process is the container's
 * word.
 */
#include "daemon/host/host_priv.h"

#include "daemon/core/clock.h"

void host_take_cpu(struct host *h, struct target *t)
{
	struct host_entry *e = host_entry_of(h, t);
	struct host_cpu now = { .known = true, .real_ns = clock_real_ns() };

	if (!e)
		return;
	if (!clock_process_cpu_ns(t->jvm.pid, &now.ns)) {
		e->cpu.known = false;
		return;
	}
	now.sum_ns = e->cpu.sum_ns;
	/* less than before: the process was reaped, and its pid is another's now */
	if (e->cpu.known && now.ns > e->cpu.ns) {
		now.sum_ns += now.ns - e->cpu.ns;
		live_add_cpu(e->source, now.ns - e->cpu.ns, e->cpu.real_ns, now.real_ns);
	}
	e->cpu = now;
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
	e->cpu.known = false;
}

uint64_t host_cpu_ns(const struct target *t)
{
	const struct host_entry *e = t->userdata;

	return e ? e->cpu.sum_ns : 0;
}
