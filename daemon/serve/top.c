/* /v1/top: the methods with the most CPU time in the last seconds, overall and for each JVM,
 * from profiles in memory. */
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/report/methods.h"
#include "daemon/serve/thread_times.h"

#define ROWS_MAX 60
#define TOP_S_MAX 20
/* How long after its end a second is taken for complete: agents read their rings every 100 ms, and
 * receivers gather for up to 500 ms. */
#define TOP_SETTLE_NS (700 * NS_PER_MS)

static uint64_t weight_of(const struct profile *p, uint32_t process)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		if (process == UINT32_MAX || p->threads[p->rows[i].thread].process == process)
			sum += p->rows[i].weight;
	return sum;
}

static uint64_t samples_of(const struct profile *p, uint32_t process)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		if (process == UINT32_MAX || p->threads[p->rows[i].thread].process == process)
			sum += p->rows[i].samples;
	return sum;
}

/* What a request for the top methods asks for. */
struct top {
	struct host *host;
	uint64_t from_ns, to_ns; /* wall time, whole seconds */
	enum wire_event event;
	enum report_order order;
};

/* Writes fields of an object: the methods of one JVM, or of all for UINT32_MAX, and sums. @all: the
 * weight of all its rows. */
static void top_methods_json(struct text_out *to, const struct profile *p,
			     const struct report_index *index, uint32_t process, uint64_t all,
			     const struct top *top)
{
	struct report_methods m;

	if (report_methods(p, index, process, top->order, &m) < 0)
		m = (struct report_methods){ 0 };
	json_begin_list(to, "methods");
	for (uint32_t i = 0; i < m.n && i < ROWS_MAX; i++) {
		const struct report_method *row = &m.methods[i];

		json_begin_object(to, NULL);
		json_add_string(to, "name", row->name);
		json_add_double(to, "self", all ? (double)row->self / (double)all : 0);
		json_add_double(to, "total", all ? (double)row->total / (double)all : 0);
		json_add_u64(to, "samples", row->samples);
		json_end_object(to);
	}
	json_end_list(to);
	if (top->event == WIRE_EVENT_CPU)
		json_add_u64(to, "cpu_ns", all);
	json_add_u64(to, "weight", all);
	json_add_u64(to, "samples", samples_of(p, process));
	report_methods_free(&m);
}

static struct target *top_target_of(struct targets *targets, const struct profile_process *p)
{
	struct target *t = NULL;

	while ((t = targets_next(targets, t)))
		if ((uint32_t)t->jvm.pid == p->pid && t->jvm.start_time == p->start_time)
			return t;
	return NULL;
}

/* Where the time of the JVM's threads went. */
static void top_add_times(struct text_out *to, struct host *h, const struct target *t,
			  uint64_t last_ns)
{
	struct thread_times times = { 0 };

	if (t && t->state == TARGET_STREAMING && thread_times_of(h, t, 0, last_ns, &times) == 0)
		thread_times_text(to, "times", &times);
	time_rows_free(&times.rows);
}

/* A JVM of the answer. */
struct top_target {
	const struct target *target; /* NULL = it ended and is forgotten */
	uint32_t process; /* its number in the profile */
	uint64_t weight;
	bool ended;
};

/* Running JVMs come first, sorted by their weight. */
static int top_order(const void *a, const void *b)
{
	const struct top_target *x = a, *y = b;

	if (x->ended != y->ended)
		return x->ended ? 1 : -1;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->process < y->process ? -1 : 1;
}

static struct top_target *top_targets(struct host *h, const struct profile *p)
{
	struct top_target *list = calloc((size_t)p->n_processes + 1, sizeof(*list));

	for (uint32_t i = 0; list && i < p->n_processes; i++) {
		const struct target *t = top_target_of(host_targets(h), &p->processes[i]);

		list[i] = (struct top_target){ .target = t,
					       .process = i,
					       .weight = weight_of(p, i),
					       .ended = !t || t->state == TARGET_GONE };
	}
	if (list)
		qsort(list, p->n_processes, sizeof(*list), top_order);
	return list;
}

static enum MHD_Result top_answer(struct request *r, const struct top *top, const struct profile *p,
				  const struct report_index *index)
{
	CLEANUP(freep) struct top_target *list = top_targets(top->host, p);
	struct text_out json = { 0 };

	if (!list)
		return answer_error(r, 503, "no memory");
	json_begin_object(&json, NULL);
	top_methods_json(&json, p, index, UINT32_MAX, weight_of(p, UINT32_MAX), top);
	json_add_string(&json, "sort", top->order == REPORT_BY_SELF ? "self" : "total");
	json_add_string(&json, "event", wire_event_names[top->event]);
	json_add_string(&json, "unit", report_events[top->event].unit);
	json_add_string(&json, "of", report_events[top->event].of);
	json_add_double(&json, "seconds", (double)(top->to_ns - top->from_ns) / 1e9);
	json_begin_list(&json, "targets");
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *process = &p->processes[list[i].process];

		json_begin_object(&json, NULL);
		top_methods_json(&json, p, index, list[i].process, list[i].weight, top);
		json_add_u64(&json, "pid", process->pid);
		json_add_string(&json, "name", p->strings[process->name]);
		json_add_bool(&json, "ended", list[i].ended);
		top_add_times(&json, top->host, list[i].target, top->to_ns - top->from_ns);
		json_end_object(&json);
	}
	json_end_list(&json);
	json_end_object(&json);
	return answer_json(r, 200, &json);
}

/* Chooses the last complete seconds: with a part of one, the rate would be wrong. */
static void top_choose_seconds(struct top *top, uint64_t now_real_ns, uint64_t window_ns)
{
	uint64_t seconds = (window_ns + NS_PER_S - 1) / NS_PER_S;

	top->to_ns = (now_real_ns - TOP_SETTLE_NS) / NS_PER_S * NS_PER_S;
	top->from_ns = live_query_begin(host_live(top->host), top->to_ns - seconds * NS_PER_S);
	if (top->from_ns > top->to_ns)
		top->from_ns = top->to_ns;
}

enum MHD_Result serve_top(struct request *r)
{
	const char *word = argument(r, "seconds"), *type = argument(r, "type");
	const char *sort = argument(r, "sort");
	uint64_t window_ns = 5 * NS_PER_S;
	struct top top = {
		.host = r->serve->host,
		.order = sort && strcmp(sort, "self") == 0 ? REPORT_BY_SELF : REPORT_BY_TOTAL,
	};
	struct profile_filter filter = { .thread = argument(r, "thread") };
	static struct selection selected;
	CLEANUP(report_index_freep) struct report_index *index = NULL;
	CLEANUP(profile_freep) struct profile *p = NULL;
	char why[400];

	if (!is_apart(r)) {
		host_take_times(r->serve->host);
		return answer_apart(r, APART_LIVE);
	}
	if (type && !report_events_by_name(type, &filter.events))
		return answer_error(r, 400,
				    "the type must be cpu, lock, alloc, wall or offcpu, not \"%s\"",
				    type);
	if (sort && top.order == REPORT_BY_TOTAL && strcmp(sort, "total") != 0)
		return answer_error(r, 400, "the order must be self or total, not \"%s\"", sort);
	top.event = report_event_of(filter.events);
	filter.events = 1u << top.event;
	filter.no_idle = !argument(r, "idle") || strcmp(argument(r, "idle"), "0") == 0;
	if (word && (!parse_duration(word, &window_ns) || window_ns > TOP_S_MAX * NS_PER_S))
		return answer_error(r, 400, "top looks back from 1 to %d seconds", TOP_S_MAX);
	if (api_select(r, &selected) < 0)
		return MHD_YES;
	if (api_not_collected(r->serve->host, &selected, filter.events, why, sizeof(why)))
		return answer_error(r, 409, "%s", why);
	filter.pids = selected.pids;
	filter.start_times = selected.start_times;
	filter.n_pids = selected.n;
	top_choose_seconds(&top, clock_real_ns(), window_ns);
	if (profile_new(&p) < 0 ||
	    live_query(host_live(top.host), top.from_ns, top.to_ns, &filter, p) < 0)
		return answer_error(r, 503, "no memory");
	host_symbolize(top.host, p);
	if (report_index_new(p, &index) < 0)
		return answer_error(r, 503, "no memory");
	return top_answer(r, &top, p, index);
}
