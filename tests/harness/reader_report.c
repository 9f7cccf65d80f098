/* Prints the totals of a session. See reader.h. */
#include "tests/harness/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void print_parts(const char *when, const struct wire_ledger *l)
{
	printf("memory %s:", when);
	for (int i = 0; i < WIRE_PART_COUNT; i++)
		printf(" %s=%llu", wire_part_names[i], (unsigned long long)l->part[i]);
	printf("\n");
}

/* The time in us that @share of the samples did not exceed; linear interpolation inside a
 * bucket. */
static double time_us(const struct wire_ledger *l, double share)
{
	double all = 0, below = 0;

	for (unsigned i = 0; i < WIRE_TIME_COUNT; i++)
		all += (double)l->time[i];
	for (unsigned i = 0; i < WIRE_TIME_COUNT; i++) {
		double floor_ns = (double)wire_time_floor(i), n = (double)l->time[i];
		double width_ns = (double)wire_time_floor(i + 1) - floor_ns;

		if (n > 0 && below + n >= share * all)
			return (floor_ns + width_ns * (share * all - below) / n) / 1000;
		below += n;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return strcmp(x->name ? x->name : "?", y->name ? y->name : "?");
}

/* Prints the weight of threads, added up by name, for names above 2 %. */
static void report_threads(void)
{
	uint64_t sum_ns = 0;

	qsort(in.threads, THREADS_MAX, sizeof(in.threads[0]), by_name);
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		sum_ns += in.threads[i].weight_ns;
		if (i + 1 < THREADS_MAX && by_name(&in.threads[i], &in.threads[i + 1]) == 0)
			continue;
		if (sum_ns * 50 > in.weight_ns)
			printf("  %5.1f %% %s\n", 100.0 * (double)sum_ns / (double)in.weight_ns,
			       in.threads[i].name ? in.threads[i].name : "?");
		sum_ns = 0;
	}
}

static void report_event(enum wire_event event)
{
	const struct wire_accounts *b = &in.ledger.accounts[event];
	const char *name = wire_event_names[event];

	if (!b->taken)
		return;
	printf("\n%s.taken=%llu %s.taken_weight=%llu %s.written=%llu ", name,
	       (unsigned long long)b->taken, name, (unsigned long long)b->taken_weight, name,
	       (unsigned long long)b->written);
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		if (b->drop[i].n)
			printf("%s.drop.%s=%llu ", name, wire_drop_names[i],
			       (unsigned long long)b->drop[i].n);
	if (event == WIRE_EVENT_LOCK)
		printf("lock.opened=%llu lock.closed=%llu", (unsigned long long)in.opened,
		       (unsigned long long)in.closed);
}

void report(double cpu_s, double seconds)
{
	const struct wire_accounts *b = &in.ledger.accounts[WIRE_EVENT_CPU];
	const uint64_t *c = in.ledger.counter;

	printf("taken=%llu taken_ns=%llu written=%llu written_ns=%llu ",
	       (unsigned long long)b->taken, (unsigned long long)b->taken_weight,
	       (unsigned long long)b->written, (unsigned long long)b->written_weight);
	for (int i = 0; i < WIRE_COUNTER_COUNT; i++)
		if (c[i])
			printf("%s=%llu ", wire_counter_names[i], (unsigned long long)c[i]);
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		if (in.ledger.accounts[WIRE_EVENT_CPU].drop[i].n)
			printf("drop.%s=%llu ", wire_drop_names[i],
			       (unsigned long long)in.ledger.accounts[WIRE_EVENT_CPU].drop[i].n);
	for (int e = 1; e < WIRE_EVENT_COUNT; e++)
		report_event(e);
	if (opt.details) {
		printf("\n");
		print_parts("last", &in.ledger);
		printf("handler us: p50=%.2f p90=%.2f p99=%.2f mean=%.2f", time_us(&in.ledger, 0.5),
		       time_us(&in.ledger, 0.9), time_us(&in.ledger, 0.99),
		       (double)c[WIRE_COUNTER_HANDLER_NS] / 1e3 /
			       (double)(b->taken ? b->taken : 1));
	}
	printf("\nledgers=%llu resets=%llu ended=%llu broken=%llu booked_s=%.2f bytes_per_sample=%.1f\n",
	       (unsigned long long)in.ledgers, (unsigned long long)in.resets,
	       (unsigned long long)in.ended, (unsigned long long)in.broken,
	       (double)in.booked_ns / 1e9, in.samples ? (double)in.bytes / (double)in.samples : 0);
	printf("seconds=%.2f decoded=%llu decoded_s=%.3f taken_s=%.3f process_s=%.3f ratio=%.4f\n",
	       seconds, (unsigned long long)in.samples, (double)in.weight_ns / 1e9,
	       (double)b->taken_weight / 1e9, cpu_s,
	       cpu_s > 0 ? (double)b->taken_weight / 1e9 / cpu_s : 0);
	report_threads();
	printf("%s\n", in.failed ? "WRONG" : "exact");
}
