/* /metrics: all families of metrics and their values. */
#include "daemon/serve/serve_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "daemon/core/warden.h"
#include "daemon/discovery/discovery.h"
#include "daemon/discovery/look.h"
#include "daemon/ground/clock.h"
#include "daemon/serve/metric_text.h"

#define LABELS_SIZE 640

/* `pid="4711",name="org.shop.Main"` */
static void metrics_of_target(const struct target *target, char labels[LABELS_SIZE])
{
	char name[480];

	snprintf(labels, LABELS_SIZE, "pid=\"%d\",name=\"%s\"", target->jvm.pid,
		 metric_label(target->jvm.name, name, sizeof(name)));
}

/* Labels of one event's series. Events that were never collected, except CPU, have no series. */
static void metrics_of_event(const struct target *target, enum wire_event event, const char *cause,
			     char labels[LABELS_SIZE])
{
	size_t len;

	metrics_of_target(target, labels);
	len = strlen(labels);
	len += (size_t)snprintf(labels + len, LABELS_SIZE - len, ",event=\"%s\"",
				wire_event_names[event]);
	if (cause)
		snprintf(labels + len, LABELS_SIZE - len, ",cause=\"%s\"", cause);
}

/* ---- of each JVM ----------------------------------------------------------------------------- */

static void put_taken(struct metric_text *m, const struct target *target, enum wire_event event,
		      const struct stream_accounts *b)
{
	char labels[LABELS_SIZE];

	metrics_of_event(target, event, NULL, labels);
	metric_count(m, labels, b->taken);
}

static void put_delivered(struct metric_text *m, const struct target *target, enum wire_event event,
			  const struct stream_accounts *b)
{
	char labels[LABELS_SIZE];

	metrics_of_event(target, event, NULL, labels);
	metric_count(m, labels, b->delivered);
}

static void put_dropped(struct metric_text *m, const struct target *target, enum wire_event event,
			const struct stream_accounts *b)
{
	char labels[LABELS_SIZE];

	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		metrics_of_event(target, event, wire_drop_names[i], labels);
		metric_count(m, labels, b->dropped[i].n);
	}
	metrics_of_event(target, event, "lost_on_wire", labels);
	metric_count(m, labels, b->lost);
}

static void metrics_put_accounts(struct metric_text *m, struct targets *targets, const char *family,
				 const char *help,
				 void (*put)(struct metric_text *, const struct target *,
					     enum wire_event, const struct stream_accounts *))
{
	struct target *target = NULL;
	struct stream_counts c;

	metric_family(m, METRIC_COUNTER, family, NULL, help);
	while ((target = targets_next(targets, target))) {
		unsigned collected = target_events(target) | 1u << WIRE_EVENT_CPU;

		target_counts(target, &c);
		for (int e = 0; e < WIRE_EVENT_COUNT; e++)
			if (collected & 1u << e || c.of[e].taken)
				put(m, target, (enum wire_event)e, &c.of[e]);
	}
}

static void metrics_put_samples(struct metric_text *m, struct targets *targets)
{
	metrics_put_accounts(m, targets, "kindling_samples_taken",
			     "Samples, waits and allocations taken by agents.", put_taken);
	metrics_put_accounts(m, targets, "kindling_samples_delivered",
			     "Samples, waits and allocations decoded by the daemon.",
			     put_delivered);
	metrics_put_accounts(m, targets, "kindling_samples_dropped",
			     "Samples, waits and allocations lost, by cause.", put_dropped);
}

/* One of the agents' own counters. @always: also for JVMs that never collected waits. */
static void put_counter(struct metric_text *m, struct targets *targets, enum wire_counter counter,
			bool always, void (*put)(struct metric_text *, const char *, uint64_t))
{
	struct target *target = NULL;
	struct stream_counts c;
	char labels[LABELS_SIZE];

	while ((target = targets_next(targets, target))) {
		target_counts(target, &c);
		if (!always && !(target_events(target) & 1u << WIRE_EVENT_LOCK) &&
		    !c.of[WIRE_EVENT_LOCK].taken)
			continue;
		metrics_of_target(target, labels);
		put(m, labels, c.ledger.counter[counter]);
	}
}

static void metrics_put_waits(struct metric_text *m, struct targets *targets)
{
	metric_family(m, METRIC_COUNTER, "kindling_short_waits", NULL,
		      "Waits for locks below the threshold, which are only counted.");
	put_counter(m, targets, WIRE_COUNTER_SHORT_WAITS, false, metric_count);
	metric_family(m, METRIC_COUNTER, "kindling_short_waits_seconds", "seconds", "Their time.");
	put_counter(m, targets, WIRE_COUNTER_SHORT_WAITS_NS, false, metric_seconds);
	metric_family(m, METRIC_COUNTER, "kindling_idle_waits", NULL,
		      "Waits for work of any length, such as of pool threads at empty queues.");
	put_counter(m, targets, WIRE_COUNTER_IDLE_WAITS, false, metric_count);
	metric_family(m, METRIC_COUNTER, "kindling_idle_waits_seconds", "seconds", "Their time.");
	put_counter(m, targets, WIRE_COUNTER_IDLE_WAITS_NS, false, metric_seconds);
}

static void put_agents(struct metric_text *m, struct targets *targets)
{
	metric_family(m, METRIC_COUNTER, "kindling_agent_cpu_seconds", "seconds",
		      "CPU time of the agent in the JVM.");
	put_counter(m, targets, WIRE_COUNTER_AGENT_CPU_NS, true, metric_seconds);
	metric_family(m, METRIC_GAUGE, "kindling_agent_bytes", "bytes",
		      "Memory of the agent in the JVM.");
	put_counter(m, targets, WIRE_COUNTER_AGENT_BYTES, true, metric_count);
}

/* What each JVM costs the daemon. */
static void put_decoding(struct metric_text *m, struct targets *targets)
{
	struct target *target = NULL;
	char labels[LABELS_SIZE], why[HELD_BACK_SIZE];
	unsigned held = 0;

	metric_family(m, METRIC_COUNTER, "kindling_decode_cpu_seconds", "seconds",
		      "CPU time of the daemon for decoding what the JVM sends.");
	while ((target = targets_next(targets, target))) {
		metrics_of_target(target, labels);
		metric_seconds(m, labels, target_decode_ns(target));
		held += target_held_back(target, why, sizeof(why));
	}
	metric_family(m, METRIC_GAUGE, "kindling_targets_held_back", NULL,
		      "JVMs that send more than their share of limits.decode_cpu allows.");
	metric_count(m, NULL, held);
}

static void put_states(struct metric_text *m, struct targets *targets)
{
	unsigned states[TARGET_STATE_COUNT] = { 0 }, faulty = 0;
	struct target *target = NULL;
	char label[64];

	while ((target = targets_next(targets, target))) {
		states[target->state]++;
		faulty += target->state == TARGET_STREAMING && target->fault.code;
	}
	metric_family(m, METRIC_GAUGE, "kindling_targets", NULL, "JVMs by state.");
	for (int i = 0; i < TARGET_STATE_COUNT; i++) {
		snprintf(label, sizeof(label), "state=\"%s\"", target_state_names[i]);
		metric_count(m, label, states[i]);
	}
	metric_family(m, METRIC_GAUGE, "kindling_targets_faulty", NULL,
		      "JVMs among those in the state streaming whose agent can collect nothing.");
	metric_count(m, NULL, faulty);
}

/* ---- of the daemon --------------------------------------------------------------------------- */

static void metrics_put_one(struct metric_text *m, enum metric_type type, const char *family,
			    const char *unit, const char *help, uint64_t value)
{
	metric_family(m, type, family, unit, help);
	metric_count(m, NULL, value);
}

static void put_crashes(struct metric_text *m, const struct targets *targets)
{
	unsigned n = 0;

	while (targets_cohort(targets, n))
		n++;
	metrics_put_one(m, METRIC_COUNTER, "kindling_crashes", NULL,
			"JVMs that crashed within ten minutes of an attach.",
			targets_crashes(targets));
	metrics_put_one(m, METRIC_GAUGE, "kindling_cohorts_blocked", NULL,
			"Kinds of JVMs that are not profiled because one of them crashed.", n);
}

static void metrics_put_symbols(struct metric_text *m, const struct symbols *symbols)
{
	struct symbols_counts c;

	symbols_counts(symbols, &c);
	metrics_put_one(m, METRIC_GAUGE, "kindling_symbols_bytes", "bytes",
			"Tables of names of native functions on disk.", c.table_bytes);
	metrics_put_one(m, METRIC_COUNTER, "kindling_symbols_refused", NULL,
			"Mapped files without names, because a process or container maps too many.",
			c.refused);
	metrics_put_one(m, METRIC_COUNTER, "kindling_symbols_failed", NULL,
			"Mapped files whose symbols could not be read.", c.failed);
}

static void put_stuck(struct metric_text *m, const struct targets *targets)
{
	uint64_t total;
	unsigned n = targets_stuck(targets, &total);

	metrics_put_one(
		m, METRIC_GAUGE, "kindling_receivers_stuck", NULL,
		"Receivers that hang at a JVM's pipe or files, were given up, and have not ended "
		"yet.",
		n);
	metrics_put_one(m, METRIC_COUNTER, "kindling_receivers_given_up", NULL,
			"Receivers given up since the daemon started.", total);
}

static void put_discovery(struct metric_text *m, const struct discovery *discovery)
{
	if (discovery)
		metrics_put_one(m, METRIC_COUNTER, "kindling_processes_examined", NULL,
				"Times that discovery examined a process, to see whether it is a JVM.",
				discovery_probes(discovery));
}

static void put_looks(struct metric_text *m, const struct look *look)
{
	struct look_counts c;

	look_counts(look, &c);
	metrics_put_one(m, METRIC_GAUGE, "kindling_looks_stuck", NULL,
			"Reads of processes that hang, were given up, and have not ended yet.",
			c.stuck);
	metrics_put_one(m, METRIC_COUNTER, "kindling_looks_given_up", NULL,
			"Reads of processes given up since the daemon started.", c.given_up);
	metrics_put_one(
		m, METRIC_COUNTER, "kindling_looks_refused", NULL,
		"Reads of processes not made because others of the same container or user hang, "
		"or are too many.",
		c.refused);
}

static void put_names(struct metric_text *m, const struct names *names)
{
	struct names_status s;

	if (!names)
		return;
	names_status(names, &s);
	metrics_put_one(m, METRIC_GAUGE, "kindling_names_failing", NULL,
			"1 while the container runtime (names.cri) does not answer.",
			s.error[0] != '\0');
	metrics_put_one(m, METRIC_COUNTER, "kindling_names_known", NULL,
			"JVMs whose container the container runtime knew.", s.named);
	metrics_put_one(m, METRIC_COUNTER, "kindling_names_unknown", NULL,
			"JVMs whose container the runtime did not know.", s.unknown);
	metrics_put_one(m, METRIC_COUNTER, "kindling_names_unanswered", NULL,
			"JVMs that went on without the runtime's answer.", s.unanswered);
	metrics_put_one(m, METRIC_GAUGE, "kindling_names_asking_again", NULL,
			"Containers that the runtime has not answered for yet; it is asked again.",
			s.asking_again);
	metrics_put_one(m, METRIC_COUNTER, "kindling_names_answered_later", NULL,
			"Containers that the runtime answered for when it was asked again.",
			s.answered_later);
}

static uint64_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t metrics_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static void put_memory(struct metric_text *m, struct host *host)
{
	metrics_put_one(m, METRIC_GAUGE, "kindling_memory_used_bytes", "bytes",
			"Memory of the daemon for data that JVMs send.", host_memory_used(host));
	metrics_put_one(m, METRIC_GAUGE, "kindling_memory_limit_bytes", "bytes",
			"Limit of that memory, limits.memory.", host_config(host)->memory_bytes);
	metrics_put_one(m, METRIC_COUNTER, "kindling_memory_ended", NULL,
			"Sessions ended because a JVM took more memory than limits.memory allows.",
			host_memory_ended(host));
}

static void put_store(struct metric_text *m, struct host *host)
{
	struct store_counts c;

	if (!host_store(host))
		return;
	store_counts(host_store(host), &c);
	metrics_put_one(m, METRIC_COUNTER, "kindling_store_windows", NULL,
			"Windows written to the history.", c.windows);
	metrics_put_one(m, METRIC_COUNTER, "kindling_store_windows_dropped", NULL,
			"Windows that could not be written.",
			c.dropped_windows + host_windows_dropped(host));
	metrics_put_one(m, METRIC_COUNTER, "kindling_store_windows_recovered", NULL,
			"Windows of a daemon that died before it closed them.",
			c.recovered_windows);
	metrics_put_one(m, METRIC_GAUGE, "kindling_store_bytes", "bytes",
			"Size of the history on disk.", c.bytes);
	metrics_put_one(m, METRIC_GAUGE, "kindling_store_limit_bytes", "bytes",
			"Limit of the size of the history, store.max_size.",
			host_config(host)->store_max_bytes);
}

static void put_daemon(struct metric_text *m, struct serve *s)
{
	metric_family(m, METRIC_INFO, "kindling_build", NULL, "What runs.");
	metric_count(m, "version=\"" KINDLING_VERSION "\"", 1);
	metric_family(m, METRIC_COUNTER, "kindling_daemon_cpu_seconds", "seconds",
		      "CPU time of the daemon.");
	metric_seconds(m, NULL, metrics_cpu_ns());
	metrics_put_one(m, METRIC_GAUGE, "kindling_daemon_resident_bytes", "bytes",
			"Resident memory of the daemon.", resident_bytes());
	metric_family(m, METRIC_GAUGE, "kindling_daemon_uptime_seconds", "seconds",
		      "Time since the daemon started.");
	metric_seconds(m, NULL, clock_mono_ns() - host_start_mono_ns(s->host));
	put_memory(m, s->host);
	metrics_put_one(m, METRIC_COUNTER, "kindling_children_refused", NULL,
			"Programs not started because the limit of running ones was reached.",
			warden_refused());
	metrics_put_symbols(m, host_symbols(s->host));
	put_store(m, s->host);
}

enum MHD_Result serve_metrics(struct request *r)
{
	struct targets *targets = host_targets(r->serve->host);
	struct metric_text m = { .openmetrics =
					 metric_wants_openmetrics(MHD_lookup_connection_value(
						 r->connection, MHD_HEADER_KIND, "Accept")) };
	size_t len;
	char *text;

	put_states(&m, targets);
	metrics_put_samples(&m, targets);
	metrics_put_waits(&m, targets);
	put_agents(&m, targets);
	put_decoding(&m, targets);
	put_crashes(&m, targets);
	put_stuck(&m, targets);
	put_discovery(&m, host_discovery(r->serve->host));
	put_looks(&m, host_look(r->serve->host));
	put_names(&m, host_names(r->serve->host));
	put_daemon(&m, r->serve);
	sinks_metrics(&m, r->serve->host);
	if (metric_take(&m, &text, &len) < 0)
		return MHD_NO;
	return answer_bytes(r, 200, metric_content_type(&m), text, len);
}
