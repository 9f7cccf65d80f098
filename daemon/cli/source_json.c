/* See source.h: `top --json` and `locks --json` of a cluster, with the words that /v1/top and
 * /v1/locks have for one host. */
#include "daemon/cli/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/report/event_names.h"
#include "daemon/report/json_out.h"
#include "daemon/report/view.h"

static int source_json_put(struct text_out *t)
{
	char *text = NULL;
	size_t len;

	if (text_take(t, &text, &len) < 0) {
		fprintf(stderr, "kindling: %s\n", strerror(ENOMEM));
		return CLI_FAILED;
	}
	puts(text);
	free(text);
	return fflush(stdout) == 0 && !ferror(stdout) ? CLI_OK : CLI_FAILED;
}

static void source_json_methods(struct text_out *to, const struct report_methods *m, unsigned rows,
				uint64_t all)
{
	json_begin_list(to, "methods");
	for (uint32_t i = 0; i < m->n && i < rows; i++) {
		json_begin_object(to, NULL);
		json_add_string(to, "name", m->methods[i].name);
		json_add_double(to, "self", all ? (double)m->methods[i].self / (double)all : 0);
		json_add_double(to, "total", all ? (double)m->methods[i].total / (double)all : 0);
		json_add_u64(to, "samples", m->methods[i].samples);
		json_end_object(to);
	}
	json_end_list(to);
}

/* The JVMs without methods of their own: a cluster may have thousands. */
static void source_json_targets(struct text_out *to, const struct profile *p)
{
	struct sum {
		uint64_t samples, weight;
	} *sums = calloc((size_t)p->n_processes + 1, sizeof(*sums));
	char value[LABEL_VALUE_SIZE];

	for (uint32_t i = 0; sums && i < p->n_rows; i++) {
		struct sum *s = &sums[p->threads[p->rows[i].thread].process];

		s->samples += p->rows[i].samples;
		s->weight += p->rows[i].weight;
	}
	json_begin_list(to, "targets");
	for (uint32_t i = 0; sums && i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];
		const char *labels = p->strings[q->labels];

		json_begin_object(to, NULL);
		json_add_u64(to, "pid", q->pid);
		json_add_string(to, "name", p->strings[q->name]);
		json_add_string(to, "node", labels_get(labels, "node", value));
		json_add_string(to, "service", labels_get(labels, "service", value));
		json_add_u64(to, "weight", sums[i].weight);
		json_add_u64(to, "samples", sums[i].samples);
		json_end_object(to);
	}
	json_end_list(to);
	free(sums);
}

int source_json_top(const struct profile *p, const struct report_methods *m, enum wire_event event,
		    const char *sort, unsigned rows, double seconds)
{
	const struct report_view view = report_view_of(p, event);
	struct text_out to = { 0 };

	json_begin_object(&to, NULL);
	source_json_methods(&to, m, rows, view.weight);
	if (event == WIRE_EVENT_CPU)
		json_add_u64(&to, "cpu_ns", view.weight);
	json_add_u64(&to, "weight", view.weight);
	json_add_u64(&to, "samples", view.samples);
	json_add_string(&to, "sort", sort);
	json_add_string(&to, "event", wire_event_names[event]);
	json_add_string(&to, "unit", report_events[event].unit);
	json_add_string(&to, "of", report_events[event].of);
	json_add_double(&to, "seconds", seconds);
	source_json_targets(&to, p);
	json_end_object(&to);
	return source_json_put(&to);
}

int source_json_locks(const struct source_lock *locks, unsigned n, bool idle, double seconds)
{
	struct text_out to = { 0 };
	uint64_t waits = 0, ns = 0;

	for (unsigned i = 0; i < n; i++) {
		waits += locks[i].waits;
		ns += locks[i].total_ns;
	}
	json_begin_object(&to, NULL);
	json_add_bool(&to, "idle_shown", idle);
	json_add_double(&to, "seconds", seconds);
	json_add_u64(&to, "waits", waits);
	json_add_u64(&to, "total_ns", ns);
	json_begin_list(&to, "classes");
	for (unsigned i = 0; i < n; i++) {
		json_begin_object(&to, NULL);
		json_add_string(&to, "class", locks[i].class_name);
		json_add_string(&to, "kind", locks[i].kind);
		json_add_u64(&to, "jvms", locks[i].jvms);
		json_add_u64(&to, "waits", locks[i].waits);
		json_add_u64(&to, "total_ns", locks[i].total_ns);
		json_end_object(&to);
	}
	json_end_list(&to);
	json_end_object(&to);
	return source_json_put(&to);
}
