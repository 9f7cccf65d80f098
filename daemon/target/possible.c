/*
 * The most that a process can have done, by the kernel's clocks: the stream checks the agent's
 * claims against it (stream/claims.c). The clock of a process that has ended cannot be read; it is
 * assumed to have used all CPUs of the host since its clock was last read.
 */
#include "daemon/target/target_priv.h"

#include "daemon/ground/clock.h"

static uint64_t possible_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (uint64_t)n : 1;
}

static uint64_t possible_read_cpu(struct target_priv *p, pid_t pid)
{
	uint64_t now = clock_mono_ns(), cpu_ns;

	/* less than before: the process was reaped, and another one has its pid */
	if (!clock_process_cpu_ns(pid, &cpu_ns) || cpu_ns < p->cpu.ns)
		return p->cpu.ns + (now - p->cpu.mono_ns) * possible_cpus();
	p->cpu.ns = cpu_ns;
	p->cpu.mono_ns = now;
	return cpu_ns;
}

void possible_begin(struct target *t)
{
	struct target_priv *p = t->priv;

	if (!p->cpu.mono_ns)
		p->cpu.mono_ns = clock_mono_ns();
	p->cpu.begin_ns = possible_read_cpu(p, t->jvm.pid);
}

uint64_t possible_cpu_ns(struct target *t)
{
	(void)possible_read_cpu(t->priv, t->jvm.pid);
	return t->priv->cpu.ns;
}

void possible_limits(void *userdata, struct stream_limits *ret)
{
	struct target *t = userdata;
	uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);

	ret->cpu_total_ns = possible_read_cpu(t->priv, t->jvm.pid);
	ret->cpu_ns = ret->cpu_total_ns > t->priv->cpu.begin_ns
			      ? ret->cpu_total_ns - t->priv->cpu.begin_ns
			      : 0;
	ret->age_ns = clock_ns(CLOCK_BOOTTIME) - t->jvm.start_time * tick_ns;
}
