/* See clock_events.h. */
#include "daemon/bpf/clock_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>
#include "daemon/core/warden.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

#define CPUS_MAX 4096
/* the periods of all CPUs are drawn anew in this time, one CPU after the other */
#define REDRAW_S	20
/* offline CPUs that are tried again in a second: a kernel may allow for many more than there are */
#define RETRIES 4
/* a CPU that lacks so many ticks, and a while longer, has lost its events */
#define SILENT_TICKS	16
#define SILENT_NS	(2 * NS_PER_S)
#define SPREAD_PERMILLE 200 /* periods vary by this share, up and down */
#define PRICE_PERIOD_NS (NS_PER_MS / 10)
#define PRICE_GAPS	100
#define PRICE_GAPS_MIN	25
#define PRICE_OUTLIERS	10 /* the longest tenth may be turns of other threads */
#define PRICE_NS_MAX	(40 * NS_PER_MS)

/* The clock events of one CPU. */
struct cpu {
	int fds[CLOCK_EVENTS_PER_CPU]; /* -1 = none; either all are open or none */
	bool offline; /* it was when it was last tried */
	uint64_t ticks; /* at ticked_ns */
	uint64_t ticked_ns; /* when ticks were last seen to go on, or its events began */
};

struct clock_events {
	int prog_fd;
	int n_cpus;
	uint64_t interval_ns; /* 0 = nothing ticks */
	/* the next CPU to redraw, and how many are due: all of them in REDRAW_S seconds */
	int redraw_next, redraw_due;
	int retry_next;
	struct cpu cpus[];
};

/* @cpu: -1 = an event for the calling thread, on any CPU. */
static int clock_events_open(int cpu, uint64_t period_ns, int prog_fd)
{
	CLEANUP(fd_closep) int fd = warden_open_clock(cpu, period_ns);

	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog_fd) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* ---- periods ------------------------------------------------------------------------------- */

static uint32_t clock_events_random(void)
{
	uint32_t x;

	if (getrandom(&x, sizeof(x), GRND_NONBLOCK) != sizeof(x))
		/* the kernel has no random numbers yet, shortly after boot */
		x = (uint32_t)clock_mono_ns() * 2654435761u;
	return x;
}

/* Draws rates and scales them so that their sum is the wanted rate. */
void clock_events_draw(uint64_t interval_ns, uint64_t *ret)
{
	uint64_t rates[CLOCK_EVENTS_PER_CPU], sum = 0;

	for (int i = 0; i < CLOCK_EVENTS_PER_CPU; i++) {
		rates[i] = 1000000 - 1000 * SPREAD_PERMILLE +
			   clock_events_random() % (2000 * SPREAD_PERMILLE);
		sum += rates[i];
	}
	for (int i = 0; i < CLOCK_EVENTS_PER_CPU; i++)
		ret[i] = interval_ns * sum / rates[i];
}

/* ---- all CPUs ------------------------------------------------------------------------------ */

static void clock_events_stop_cpu(struct clock_events *c, int cpu)
{
	for (int i = 0; i < CLOCK_EVENTS_PER_CPU; i++)
		c->cpus[cpu].fds[i] = fd_close(c->cpus[cpu].fds[i]);
}

static bool is_running(const struct clock_events *c, int cpu)
{
	return c->cpus[cpu].fds[0] >= 0;
}

static int clock_events_start_cpu(struct clock_events *c, int cpu)
{
	uint64_t periods[CLOCK_EVENTS_PER_CPU];

	clock_events_draw(c->interval_ns, periods);
	for (int i = 0; i < CLOCK_EVENTS_PER_CPU; i++) {
		int fd = clock_events_open(cpu, periods[i], c->prog_fd);

		if (fd < 0) {
			clock_events_stop_cpu(c, cpu);
			return fd;
		}
		c->cpus[cpu].fds[i] = fd;
	}
	c->cpus[cpu].ticked_ns = clock_mono_ns();
	return 0;
}

static void clock_events_redraw(struct clock_events *c, int cpu)
{
	uint64_t periods[CLOCK_EVENTS_PER_CPU];

	clock_events_draw(c->interval_ns, periods);
	for (int i = 0; i < CLOCK_EVENTS_PER_CPU && is_running(c, cpu); i++)
		if (ioctl(c->cpus[cpu].fds[i], PERF_EVENT_IOC_PERIOD, &periods[i]) < 0)
			/* clock_events_start_missing() starts it again */
			clock_events_stop_cpu(c, cpu);
}

static void clock_events_stop(struct clock_events *c)
{
	for (int i = 0; i < c->n_cpus; i++) {
		clock_events_stop_cpu(c, i);
		c->cpus[i].offline = false;
	}
	c->interval_ns = 0;
}

static int clock_events_start_missing(struct clock_events *c)
{
	int r, last = -ENODEV, running = 0;

	for (int i = 0; i < c->n_cpus; i++) {
		if (c->cpus[i].offline)
			continue;
		r = is_running(c, i) ? 0 : clock_events_start_cpu(c, i);
		running += r == 0;
		c->cpus[i].offline = r == -ENODEV;
		if (r < 0 && r != -ENODEV)
			last = r;
	}
	/* ticks on only some CPUs would silently leave out the time on the others */
	return running && last == -ENODEV ? 0 : last;
}

int clock_events_set(struct clock_events *c, uint64_t interval_ns)
{
	int r;

	if (interval_ns == 0) {
		clock_events_stop(c);
		return 0;
	}
	if (interval_ns != c->interval_ns) {
		c->interval_ns = interval_ns;
		for (int i = 0; i < c->n_cpus; i++) {
			clock_events_redraw(c, i);
			c->cpus[i].ticked_ns = clock_mono_ns();
		}
	}
	r = clock_events_start_missing(c);
	if (r < 0)
		clock_events_stop(c);
	return r;
}

/* A descriptor of an event that the kernel has ended looks like any other, and its period can still
 * be set. */
static void clock_events_stop_silent(struct clock_events *c, int cpu, uint64_t ticks)
{
	struct cpu *p = &c->cpus[cpu];
	uint64_t now = clock_mono_ns();

	if (ticks != p->ticks) {
		p->ticks = ticks;
		p->ticked_ns = now;
	} else if (is_running(c, cpu) &&
		   now - p->ticked_ns > SILENT_NS + SILENT_TICKS * c->interval_ns) {
		clock_events_stop_cpu(c, cpu);
	}
}

/* Has some of the offline CPUs tried again. */
static void clock_events_retry(struct clock_events *c)
{
	int n = 0;

	for (int i = 0; i < c->n_cpus && n < RETRIES; i++) {
		struct cpu *p = &c->cpus[c->retry_next];

		c->retry_next = (c->retry_next + 1) % c->n_cpus;
		n += p->offline;
		p->offline = false;
	}
}

void clock_events_tick(struct clock_events *c, const uint64_t *ticks, int n)
{
	if (c->interval_ns == 0)
		return;
	for (int i = 0; i < c->n_cpus && i < n; i++)
		clock_events_stop_silent(c, i, ticks[i]);
	clock_events_retry(c);
	for (c->redraw_due += c->n_cpus; c->redraw_due >= REDRAW_S; c->redraw_due -= REDRAW_S) {
		clock_events_redraw(c, c->redraw_next);
		c->redraw_next = (c->redraw_next + 1) % c->n_cpus;
	}
	(void)clock_events_start_missing(c); /* tries again what the kernel refused before */
}

int clock_events_new(int prog_fd, struct clock_events **ret)
{
	CLEANUP(fd_closep) int fd = warden_open_clock(0, NS_PER_S);
	/* also those that may be added later */
	int cpus = libbpf_num_possible_cpus();
	struct clock_events *c;

	if (cpus < 1)
		cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	/* perf_event_paranoid or seccomp may refuse this */
	if (fd < 0 && fd != -ENODEV)
		return fd;
	cpus = cpus < 1 ? 1 : cpus < CPUS_MAX ? cpus : CPUS_MAX;
	c = calloc(1, sizeof(*c) + (size_t)cpus * sizeof(c->cpus[0]));
	if (!c)
		return -ENOMEM;
	c->prog_fd = prog_fd;
	c->n_cpus = cpus;
	for (int i = 0; i < c->n_cpus; i++)
		for (int k = 0; k < CLOCK_EVENTS_PER_CPU; k++)
			c->cpus[i].fds[k] = -1;
	*ret = c;
	return 0;
}

struct clock_events *clock_events_free(struct clock_events *c)
{
	if (c)
		clock_events_stop(c);
	free(c);
	return NULL;
}

/* ---- cost ---------------------------------------------------------------------------------- */

static int clock_events_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The gap that is in the middle of the time of all, sorted ones: in a virtual machine there are
 * about as many short ones beside the ticks, so that the median would be the one or the other by
 * chance. */
static uint64_t clock_events_middle(const uint64_t *gaps, unsigned n)
{
	uint64_t sum_ns = 0, half_ns = 0;

	for (unsigned i = 0; i < n; i++)
		sum_ns += gaps[i];
	for (unsigned i = 0; i < n; i++) {
		half_ns += gaps[i];
		if (half_ns >= sum_ns / 2)
			return gaps[i];
	}
	return 0;
}

uint64_t clock_events_price(int prog_fd)
{
	CLEANUP(fd_closep) int fd = clock_events_open(-1, PRICE_PERIOD_NS, prog_fd);
	uint64_t begin = clock_mono_ns(), last = begin, least = UINT64_MAX, now;
	uint64_t gaps[PRICE_GAPS];
	unsigned n = 0;

	if (fd < 0)
		return 0;
	/* one turn of this loop takes some ten ns, or some hundred where the clock is a system
	 * call; the kernel's own tick and other threads cause gaps too, but few compared with those
	 * caused here */
	while (n < PRICE_GAPS && (now = clock_mono_ns()) - begin < PRICE_NS_MAX) {
		uint64_t turn_ns = now - last;

		if (turn_ns && turn_ns < least)
			least = turn_ns;
		if (turn_ns > 400 && turn_ns > 4 * least)
			gaps[n++] = turn_ns;
		last = now;
	}
	if (n < PRICE_GAPS_MIN)
		return 0;
	qsort(gaps, n, sizeof(gaps[0]), clock_events_compare);
	return clock_events_middle(gaps, n - n / PRICE_OUTLIERS);
}
