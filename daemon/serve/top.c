/* /v1/top: the methods with the most CPU time in the last seconds, overall and for each JVM,
 * from profiles in memory. */
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/report/methods.h"
#include "daemon/serve/thread_times.h"

#define ROWS_MAX 60

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

static cJSON *methods_json(const struct profile *p, const struct report_index *index,
			   uint32_t process, enum wire_event event, enum report_order order)
{
	cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "methods");
	uint64_t all = weight_of(p, process);
	struct report_methods m;

	if (event == WIRE_EVENT_CPU)
		cJSON_AddNumberToObject(o, "cpu_ns", (double)all);
	cJSON_AddNumberToObject(o, "weight", (double)all);
	cJSON_AddNumberToObject(o, "samples", (double)samples_of(p, process));
	if (report_methods(p, index, process, order, &m) < 0)
		return o;
	for (uint32_t i = 0; i < m.n && i < ROWS_MAX; i++) {
		cJSON *row = cJSON_CreateObject();

		cJSON_AddStringToObject(row, "name", m.methods[i].name);
		cJSON_AddNumberToObject(row, "self",
					all ? (double)m.methods[i].self / (double)all : 0);
		cJSON_AddNumberToObject(row, "total",
					all ? (double)m.methods[i].total / (double)all : 0);
		cJSON_AddNumberToObject(row, "samples", (double)m.methods[i].samples);
		cJSON_AddItemToArray(list, row);
	}
	report_methods_free(&m);
	return o;
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
static void top_add_times(cJSON *to, struct host *h, const struct profile_process *p,
			  uint64_t last_ns)
{
	const struct target *t = top_target_of(host_targets(h), p);
	struct thread_times times = { 0 };
	struct text_out out = { 0 };

	if (t && t->state == TARGET_STREAMING && thread_times_of(h, t, last_ns, &times) == 0) {
		thread_times_text(&out, &times);
		cJSON_AddItemToObject(to, "times", cJSON_ParseWithLength(out.p, out.len));
	}
	time_rows_free(&times.rows);
	free(out.p);
}

static cJSON *top_target_json(const struct profile *p, const struct report_index *index,
			      uint32_t process, enum wire_event event, enum report_order order,
			      struct targets *targets)
{
	const struct profile_process *x = &p->processes[process];
	const struct target *of = top_target_of(targets, x);
	cJSON *t = methods_json(p, index, process, event, order);

	cJSON_AddNumberToObject(t, "pid", x->pid);
	cJSON_AddStringToObject(t, "name", p->strings[x->name]);
	cJSON_AddBoolToObject(t, "ended", !of || of->state == TARGET_GONE);
	return t;
}

static bool top_comes_before(const cJSON *a, const cJSON *b)
{
	bool a_ended = cJSON_IsTrue(cJSON_GetObjectItem(a, "ended"));
	bool b_ended = cJSON_IsTrue(cJSON_GetObjectItem(b, "ended"));

	if (a_ended != b_ended)
		return b_ended;
	return cJSON_GetObjectItem(a, "weight")->valuedouble >
	       cJSON_GetObjectItem(b, "weight")->valuedouble;
}

/* Running JVMs come first, sorted by their weight. */
static void add_target(cJSON *list, cJSON *target)
{
	const cJSON *other;
	int at = 0;

	cJSON_ArrayForEach(other, list)
	{
		if (top_comes_before(target, other))
			break;
		at++;
	}
	cJSON_InsertItemInArray(list, at, target);
}

enum MHD_Result serve_top(struct request *r)
{
	const char *word = argument(r, "seconds"), *type = argument(r, "type");
	const char *sort = argument(r, "sort");
	enum report_order order =
		sort && strcmp(sort, "self") == 0 ? REPORT_BY_SELF : REPORT_BY_TOTAL;
	struct profile_filter filter = { .thread = argument(r, "thread") };
	static struct selection selected;
	CLEANUP(report_index_freep) struct report_index *index = NULL;
	CLEANUP(profile_freep) struct profile *p = NULL;
	uint64_t window = 5 * NS_PER_S, now = clock_real_ns();
	enum wire_event event;
	cJSON *o, *list;
	char why[400];

	if (!is_apart(r)) {
		host_take_times(r->serve->host);
		return answer_apart(r, APART_LIVE);
	}
	if (type && !report_events_by_name(type, &filter.events))
		return answer_error(r, 400,
				    "the type must be cpu, lock, alloc, wall or offcpu, not \"%s\"",
				    type);
	if (sort && order == REPORT_BY_TOTAL && strcmp(sort, "total") != 0)
		return answer_error(r, 400, "the order must be self or total, not \"%s\"", sort);
	event = report_event_of(filter.events);
	filter.events = 1u << event;
	filter.no_idle = !argument(r, "idle") || strcmp(argument(r, "idle"), "0") == 0;
	if (word && (!parse_duration(word, &window) || window > 20 * NS_PER_S))
		return answer_error(r, 400, "top looks back from 1 to 20 seconds");
	if (api_select(r, &selected) < 0)
		return MHD_YES;
	if (api_not_collected(r->serve->host, &selected, filter.events, why, sizeof(why)))
		return answer_error(r, 409, "%s", why);
	filter.pids = selected.pids;
	filter.start_times = selected.start_times;
	filter.n_pids = selected.n;
	if (profile_new(&p) < 0 ||
	    live_query(host_live(r->serve->host), now - window, now, &filter, p) < 0)
		return answer_error(r, 503, "no memory");
	host_symbolize(r->serve->host, p);
	if (report_index_new(p, &index) < 0)
		return answer_error(r, 503, "no memory");
	o = methods_json(p, index, UINT32_MAX, event, order);
	cJSON_AddStringToObject(o, "sort", order == REPORT_BY_SELF ? "self" : "total");
	cJSON_AddStringToObject(o, "event", wire_event_names[event]);
	cJSON_AddStringToObject(o, "unit", report_events[event].unit);
	cJSON_AddStringToObject(o, "of", report_events[event].of);
	cJSON_AddNumberToObject(o, "seconds", (double)window / 1e9);
	list = cJSON_AddArrayToObject(o, "targets");
	for (uint32_t i = 0; i < p->n_processes; i++) {
		cJSON *target =
			top_target_json(p, index, i, event, order, host_targets(r->serve->host));

		top_add_times(target, r->serve->host, &p->processes[i], window);
		add_target(list, target);
	}
	return answer_json(r, 200, o);
}
