/* /metrics: Prometheus text. */
#include "daemon/serve/serve_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "daemon/core/clock.h"
#include "daemon/core/warden.h"
#include "daemon/discovery/look.h"
#include "daemon/report/text_out.h"

static void head(struct text_out *t, const char *name, const char *type, const char *help)
{
	text_printf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct text_out *t, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_bytes(t, "\\", 1);
		text_bytes(t, *s == '\n' ? " " : s, 1);
	}
}

static void put_target(struct text_out *t, const char *metric, const struct target *target,
		       uint64_t value)
{
	text_printf(t, "%s{pid=\"%d\",name=\"", metric, target->jvm.pid);
	put_label(t, target->jvm.name);
	text_printf(t, "\"} %llu\n", (unsigned long long)value);
}

/* One series an event; those that were never collected have none, but CPU. */
static void put_event(struct text_out *t, const char *metric, const struct target *target,
		      enum wire_event event, const char *cause, uint64_t value)
{
	text_printf(t, "%s{pid=\"%d\",name=\"", metric, target->jvm.pid);
	put_label(t, target->jvm.name);
	text_printf(t, "\",event=\"%s\"", wire_event_names[event]);
	if (cause)
		text_printf(t, ",cause=\"%s\"", cause);
	text_printf(t, "} %llu\n", (unsigned long long)value);
}

static void put_taken(struct text_out *t, const char *metric, const struct target *target,
		      enum wire_event event, const struct stream_books *b)
{
	put_event(t, metric, target, event, NULL, b->taken);
}

static void put_delivered(struct text_out *t, const char *metric, const struct target *target,
			  enum wire_event event, const struct stream_books *b)
{
	put_event(t, metric, target, event, NULL, b->delivered);
}

static void put_dropped(struct text_out *t, const char *metric, const struct target *target,
			enum wire_event event, const struct stream_books *b)
{
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		put_event(t, metric, target, event, wire_drop_names[i], b->dropped[i].n);
	put_event(t, metric, target, event, "lost_on_wire", b->lost);
}

static void put_books(struct text_out *t, struct targets *targets, const char *metric,
		      const char *help,
		      void (*put)(struct text_out *, const char *, const struct target *,
				  enum wire_event, const struct stream_books *))
{
	struct target *target = NULL;
	struct stream_counts c;

	head(t, metric, "counter", help);
	while ((target = targets_next(targets, target))) {
		unsigned collected = target_events(target) | 1u << WIRE_EVENT_CPU;

		target_counts(target, &c);
		for (int e = 0; e < WIRE_EVENT_COUNT; e++)
			if (collected & 1u << e || c.of[e].taken)
				put(t, metric, target, (enum wire_event)e, &c.of[e]);
	}
}

static void put_samples(struct text_out *t, struct targets *targets)
{
	put_books(t, targets, "kindling_samples_taken_total",
		  "Samples, waits and allocations counted where they are met.", put_taken);
	put_books(t, targets, "kindling_samples_delivered_total", "Those decoded by the daemon.",
		  put_delivered);
	put_books(t, targets, "kindling_samples_dropped_total", "Those lost on the way, by cause.",
		  put_dropped);
}

static void put_waits(struct text_out *t, struct targets *targets, const char *metric,
		      const char *help, enum wire_counter counter)
{
	struct target *target = NULL;
	struct stream_counts c;

	head(t, metric, "counter", help);
	while ((target = targets_next(targets, target))) {
		target_counts(target, &c);
		if (target_events(target) & 1u << WIRE_EVENT_LOCK || c.of[WIRE_EVENT_LOCK].taken)
			put_target(t, metric, target, c.ledger.counter[counter]);
	}
}

static void put_agents(struct text_out *t, struct targets *targets)
{
	struct target *target = NULL;
	struct stream_counts c;

	head(t, "kindling_agent_cpu_nanoseconds_total", "counter",
	     "CPU time of the agent in the JVM.");
	while ((target = targets_next(targets, target))) {
		target_counts(target, &c);
		put_target(t, "kindling_agent_cpu_nanoseconds_total", target,
			   c.ledger.counter[WIRE_COUNTER_AGENT_CPU_NS]);
	}
	head(t, "kindling_agent_bytes", "gauge", "Memory of the agent in the JVM.");
	while ((target = targets_next(targets, target))) {
		target_counts(target, &c);
		put_target(t, "kindling_agent_bytes", target,
			   c.ledger.counter[WIRE_COUNTER_AGENT_BYTES]);
	}
}

/* What the daemon pays for each of them. */
static void put_decoding(struct text_out *t, struct targets *targets)
{
	struct target *target = NULL;
	unsigned held = 0;
	char why[200];

	head(t, "kindling_decode_cpu_nanoseconds_total", "counter",
	     "CPU time of the daemon for what the JVM says.");
	while ((target = targets_next(targets, target))) {
		put_target(t, "kindling_decode_cpu_nanoseconds_total", target,
			   target_decode_ns(target));
		held += target_held_back(target, why, sizeof(why));
	}
	head(t, "kindling_targets_held_back", "gauge",
	     "JVMs that say more than limits.decode_cpu and their part of it allow.");
	text_printf(t, "kindling_targets_held_back %u\n", held);
}

static void put_crashes(struct text_out *t, const struct targets *targets)
{
	unsigned n = 0;

	while (targets_cohort(targets, n))
		n++;
	head(t, "kindling_crashes_total", "counter",
	     "JVMs that crashed within ten minutes of an attach.");
	text_printf(t, "kindling_crashes_total %llu\n",
		    (unsigned long long)targets_crashes(targets));
	head(t, "kindling_cohorts_blocked", "gauge",
	     "Kinds of JVMs that are left alone since one crashed.");
	text_printf(t, "kindling_cohorts_blocked %u\n", n);
}

static void put_symbols(struct text_out *t, const struct symbols *symbols)
{
	struct symbols_counts c;

	symbols_counts(symbols, &c);
	head(t, "kindling_symbols_bytes", "gauge", "Tables of names of native functions on disk.");
	text_printf(t, "kindling_symbols_bytes %llu\n", (unsigned long long)c.table_bytes);
	head(t, "kindling_symbols_refused_total", "counter",
	     "Mapped files beyond the bound of a process or a container, without names.");
	text_printf(t, "kindling_symbols_refused_total %llu\n", (unsigned long long)c.refused);
	head(t, "kindling_symbols_failed_total", "counter", "Mapped files that gave no table.");
	text_printf(t, "kindling_symbols_failed_total %llu\n", (unsigned long long)c.failed);
}

static void put_stuck(struct text_out *t, const struct targets *targets)
{
	uint64_t total;
	unsigned n = targets_stuck(targets, &total);

	head(t, "kindling_receivers_stuck", "gauge",
	     "JVMs whose pipe or files do not answer: who was to read them was given up and has not ended.");
	text_printf(t, "kindling_receivers_stuck %u\n", n);
	head(t, "kindling_receivers_stuck_total", "counter", "Those given up since the start.");
	text_printf(t, "kindling_receivers_stuck_total %llu\n", (unsigned long long)total);
}

static void put_looks(struct text_out *t, const struct look *look)
{
	struct look_counts c;

	look_counts(look, &c);
	head(t, "kindling_looks_stuck", "gauge",
	     "Looks at processes that were given up because they do not answer, and have not ended.");
	text_printf(t, "kindling_looks_stuck %u\n", c.stuck);
	head(t, "kindling_looks_stuck_total", "counter", "Those given up since the start.");
	text_printf(t, "kindling_looks_stuck_total %llu\n", (unsigned long long)c.given_up);
	head(t, "kindling_looks_refused_total", "counter",
	     "Looks not made because others of their container or user do not answer, or are too many.");
	text_printf(t, "kindling_looks_refused_total %llu\n", (unsigned long long)c.refused);
}

static void put_children(struct text_out *t)
{
	head(t, "kindling_children_refused_total", "counter",
	     "Programs not started because as many of them run as may.");
	text_printf(t, "kindling_children_refused_total %llu\n",
		    (unsigned long long)warden_refused());
}

static void put_daemon(struct text_out *t, struct serve *s)
{
	struct rusage u;
	struct store_counts c;
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f) {
		if (fscanf(f, "%*d %ld", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	getrusage(RUSAGE_SELF, &u);
	head(t, "kindling_daemon_cpu_seconds_total", "counter", "CPU time of the daemon.");
	text_printf(t, "kindling_daemon_cpu_seconds_total %.6f\n",
		    (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6 +
			    (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6);
	head(t, "kindling_daemon_resident_bytes", "gauge", "Resident memory of the daemon.");
	text_printf(t, "kindling_daemon_resident_bytes %ld\n", pages * sysconf(_SC_PAGESIZE));
	head(t, "kindling_daemon_uptime_seconds", "gauge", "Time since the daemon began.");
	text_printf(t, "kindling_daemon_uptime_seconds %.3f\n",
		    (double)(clock_mono_ns() - host_start_mono_ns(s->host)) / 1e9);
	head(t, "kindling_memory_ended_total", "counter",
	     "Sessions ended because a JVM took more memory than limits.memory allows.");
	text_printf(t, "kindling_memory_ended_total %llu\n",
		    (unsigned long long)host_memory_ended(s->host));
	put_children(t);
	put_symbols(t, host_symbols(s->host));
	if (!host_store(s->host))
		return;
	store_counts(host_store(s->host), &c);
	head(t, "kindling_store_windows_total", "counter", "Windows written to the history.");
	text_printf(t, "kindling_store_windows_total %llu\n", (unsigned long long)c.windows);
	head(t, "kindling_store_windows_dropped_total", "counter",
	     "Windows that could not be written.");
	text_printf(t, "kindling_store_windows_dropped_total %llu\n",
		    (unsigned long long)(c.dropped_windows + host_windows_dropped(s->host)));
	head(t, "kindling_store_windows_recovered_total", "counter",
	     "Windows of a daemon that died before it closed them.");
	text_printf(t, "kindling_store_windows_recovered_total %llu\n",
		    (unsigned long long)c.recovered_windows);
	head(t, "kindling_store_bytes", "gauge", "Size of the history on disk.");
	text_printf(t, "kindling_store_bytes %llu\n", (unsigned long long)c.bytes);
}

enum MHD_Result serve_metrics(struct request *r)
{
	struct targets *targets = host_targets(r->serve->host);
	unsigned states[TARGET_STATE_COUNT] = { 0 };
	struct text_out t = { 0 };
	struct target *target = NULL;
	size_t len;
	char *text;

	while ((target = targets_next(targets, target)))
		states[target->state]++;
	head(&t, "kindling_targets", "gauge", "JVMs by state.");
	for (int i = 0; i < TARGET_STATE_COUNT; i++)
		text_printf(&t, "kindling_targets{state=\"%s\"} %u\n", target_state_names[i],
			    states[i]);
	put_samples(&t, targets);
	put_waits(&t, targets, "kindling_short_waits_total",
		  "Waits for locks below the threshold, which are only counted.",
		  WIRE_COUNTER_SHORT_WAITS);
	put_waits(&t, targets, "kindling_short_waits_nanoseconds_total", "Their time.",
		  WIRE_COUNTER_SHORT_WAITS_NS);
	put_waits(&t, targets, "kindling_idle_waits_total",
		  "Waits of any length for want of work, of pool threads at empty queues.",
		  WIRE_COUNTER_IDLE_WAITS);
	put_waits(&t, targets, "kindling_idle_waits_nanoseconds_total", "Their time.",
		  WIRE_COUNTER_IDLE_WAITS_NS);
	put_agents(&t, targets);
	put_decoding(&t, targets);
	put_crashes(&t, targets);
	put_stuck(&t, targets);
	put_looks(&t, host_look(r->serve->host));
	put_daemon(&t, r->serve);
	sinks_metrics(&t, r->serve->host);
	if (text_take(&t, &text, &len) < 0)
		return MHD_NO;
	return answer_bytes(r, 200, "text/plain; version=0.0.4", text, len);
}
