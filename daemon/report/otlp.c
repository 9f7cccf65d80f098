/*
 * The request of an OTLP client: an ExportProfilesServiceRequest of opentelemetry-proto 1.11, as
 * protobuf or as the JSON that the protocol defines for it (protojson.h). Each JVM is a resource
 * with one profile for each kind of event. A sample's link has the ids of its trace and span; ids
 * that a link cannot have (SkyWalking's, a trace id alone) are attributes. The value of a sample is
 * its weight, because intervals change; attributes of the profile have the numbers of samples and
 * of losses.
 */
#include "daemon/report/formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/ground/utf8.h"
#include "daemon/report/json_out.h"
#include "daemon/report/otlp_tables.h"
#include "daemon/report/protojson.h"

#define RESOURCE_ATTRIBUTES_MAX 80
#define PROFILE_ATTRIBUTES	9
#define SAMPLE_ATTRIBUTES_MAX	6

/* What each kind of event is called in OTLP. A period of 1 means that each event is reported. */
static const struct {
	const char *type, *unit, *period_type;
	bool periodic;
} otlp_events[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = { "cpu", "nanoseconds", "cpu", true },
	[WIRE_EVENT_LOCK] = { "delay", "nanoseconds", "lock", false },
	[WIRE_EVENT_ALLOC] = { "alloc_space", "bytes", "space", true },
	[WIRE_EVENT_WALL] = { "wall", "nanoseconds", "wall", true },
	[WIRE_EVENT_OFFCPU] = { "offcpu", "nanoseconds", "offcpu", false },
};

struct otlp_writer {
	const struct profile *p;
	struct otlp_tables tables;
	struct otlp_table samples; /* of the current profile */
	int32_t *locations; /* by frame; 0 = none yet */
	int32_t *chain; /* has room for the deepest stack */
	uint32_t *order; /* rows, by process and event */
	Otlp__ExportRequest out;
	Otlp__ProfilesDictionary dictionary;
};

/* Makes an empty message of the protocol; returns from the calling function without memory. */
#define OTLP_TAKE(w, ret, type)                                         \
	do {                                                            \
		(ret) = arena_take(&(w)->tables.arena, sizeof(*(ret))); \
		if (!(ret))                                             \
			return;                                         \
		type##__init(ret);                                      \
	} while (0)

/* ---- stacks ---------------------------------------------------------------------------------- */

static const char *otlp_frame_type(unsigned kind)
{
	if (wire_kind_is_method(kind) || kind == WIRE_KIND_STUB)
		return "jvm";
	return kind == WIRE_KIND_NATIVE ? "native" : kind == WIRE_KIND_KERNEL ? "kernel" : NULL;
}

static int32_t otlp_frame(struct otlp_writer *w, uint32_t frame)
{
	const struct profile_frame *f = &w->p->frames[frame];
	const char *const *strings = w->p->strings, *type = otlp_frame_type(f->kind);
	char name[1536] = "", system[2048] = "";
	int32_t function;

	if (w->locations[frame])
		return w->locations[frame];
	report_frame_name(w->p, f, name, sizeof(name));
	if (f->signature)
		snprintf(system, sizeof(system), "%s%s", name, strings[f->signature]);
	function = otlp_function(&w->tables, name, system, strings[f->file]);
	w->locations[frame] =
		otlp_location(&w->tables, function, otlp_mapping(&w->tables, strings[f->module]),
			      f->offset, f->line > 0 ? f->line : 0,
			      type ? otlp_attribute(&w->tables, "profile.frame.type", type) : 0);
	return w->locations[frame];
}

static int32_t otlp_stack_of(struct otlp_writer *w, const struct profile_row *r)
{
	size_t n = 0;

	for (uint32_t node = r->node; node; node = w->p->nodes[node].parent)
		w->chain[n++] = otlp_frame(w, w->p->nodes[node].frame);
	if (n == 0)
		w->chain[n++] = otlp_location(
			&w->tables, otlp_function(&w->tables, "[no stack]", "", ""), 0, 0, 0, 0);
	return otlp_stack(&w->tables, w->chain, n);
}

/* ---- samples --------------------------------------------------------------------------------- */

static size_t otlp_sample_attributes(struct otlp_writer *w, const struct profile_row *r,
				     int32_t *ret)
{
	const struct profile_thread *t = &w->p->threads[r->thread];
	size_t n = 0;

	ret[n++] = otlp_attribute(&w->tables, "thread.name", w->p->strings[t->name]);
	if (t->tid < WIRE_VIRTUAL_TID)
		ret[n++] = otlp_number(&w->tables, "thread.id", t->tid, "");
	else if (t->tid > WIRE_VIRTUAL_TID)
		ret[n++] = otlp_number(&w->tables, "kindling.thread.virtual_id",
				       t->tid - WIRE_VIRTUAL_TID, "");
	if (r->event == WIRE_EVENT_LOCK)
		ret[n++] = otlp_attribute(&w->tables, "kindling.wait", wire_wait_names[r->wait]);
	if (r->idle)
		ret[n++] = otlp_attribute(&w->tables, "kindling.idle", "true");
	return n;
}

/* The index of the sample's link. 0 = it has none; ids that a link cannot have become attributes,
 * up to two. */
static int32_t otlp_trace(struct otlp_writer *w, const struct profile_row *r, int32_t *attributes,
			  size_t *n)
{
	const struct profile_span *s = r->span ? &w->p->spans[r->span - 1] : NULL;
	const char *trace_id, *span_id;
	int32_t link;

	if (!s)
		return 0;
	trace_id = w->p->strings[s->trace_id];
	span_id = w->p->strings[s->span_id];
	link = otlp_link(&w->tables, trace_id, span_id);
	if (!link)
		attributes[(*n)++] = otlp_attribute(&w->tables, "kindling.trace_id", trace_id);
	if (!link && *span_id)
		attributes[(*n)++] = otlp_attribute(&w->tables, "kindling.span_id", span_id);
	return link;
}

/* Adds a row. Rows that differ only in members for which OTLP's frames have no field become one
 * sample. */
static void otlp_sample(struct otlp_writer *w, Otlp__Profile *profile, const struct profile_row *r)
{
	int32_t id[2 + SAMPLE_ATTRIBUTES_MAX] = { otlp_stack_of(w, r) };
	size_t n = otlp_sample_attributes(w, r, id + 2);
	Otlp__Sample *s;
	bool is_new;
	int32_t i;

	id[1] = otlp_trace(w, r, id + 2, &n);
	i = otlp_table_index(&w->samples, &w->tables.arena, id, (n + 2) * sizeof(*id), &is_new);
	if (!i)
		return;
	if (!is_new) {
		s = w->samples.entries[i];
		s->values[0] += (int64_t)r->weight;
		return;
	}
	OTLP_TAKE(w, s, otlp__sample);
	s->stack_index = id[0];
	s->link_index = id[1];
	s->attribute_indices = arena_copy(&w->tables.arena, id + 2, n * sizeof(*id));
	s->n_attribute_indices = n;
	s->values = arena_copy(&w->tables.arena, &(int64_t){ (int64_t)r->weight }, sizeof(int64_t));
	s->n_values = 1;
	w->samples.entries[i] = s;
	profile->samples[profile->n_samples++] = s;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void otlp_type(struct otlp_writer *w, Otlp__ValueType **ret, const char *type,
		      const char *unit)
{
	OTLP_TAKE(w, *ret, otlp__value_type);
	(*ret)->type_strindex = otlp_string(&w->tables, type);
	(*ret)->unit_strindex = otlp_string(&w->tables, unit);
}

static void otlp_profile_attributes(struct otlp_writer *w, Otlp__Profile *profile,
				    const struct profile_losses *l, enum wire_event event,
				    uint64_t samples)
{
	const struct {
		const char *key;
		uint64_t n;
		const char *unit;
	} numbers[PROFILE_ATTRIBUTES] = {
		{ "kindling.samples", samples, "" },
		{ "kindling.taken", l->taken, "" },
		{ "kindling.taken_weight", l->taken_weight, otlp_events[event].unit },
		{ "kindling.delivered", l->delivered, "" },
		{ "kindling.delivered_weight", l->delivered_weight, otlp_events[event].unit },
		{ "kindling.dropped", l->dropped, "" },
		{ "kindling.dropped_weight", l->dropped_weight, otlp_events[event].unit },
		{ l->no_ids ? "kindling.without_ids" : NULL, l->no_ids, "" },
	};
	int32_t *indices =
		arena_take(&w->tables.arena, (PROFILE_ATTRIBUTES + 1) * sizeof(*indices));

	if (!indices)
		return;
	indices[profile->n_attribute_indices++] =
		otlp_attribute(&w->tables, "kindling.event", wire_event_names[event]);
	for (size_t i = 0; i < PROFILE_ATTRIBUTES && numbers[i].key; i++)
		indices[profile->n_attribute_indices++] = otlp_number(
			&w->tables, numbers[i].key, (int64_t)numbers[i].n, numbers[i].unit);
	profile->attribute_indices = indices;
}

/* Makes a profile of the @n rows in @rows, which have the same process and event. */
static void otlp_profile(struct otlp_writer *w, Otlp__Profile **ret, const uint32_t *rows,
			 uint32_t n)
{
	const struct profile *p = w->p;
	enum wire_event event = (enum wire_event)p->rows[rows[0]].event;
	const struct profile_process *q =
		&p->processes[p->threads[p->rows[rows[0]].thread].process];
	uint64_t samples = 0, weight = 0;
	Otlp__Profile *profile;

	OTLP_TAKE(w, profile, otlp__profile);
	profile->samples = arena_take(&w->tables.arena, n * sizeof(*profile->samples));
	otlp_table_clear(&w->samples);
	for (uint32_t i = 0; i < n && !w->tables.arena.failed; i++) {
		otlp_sample(w, profile, &p->rows[rows[i]]);
		samples += p->rows[rows[i]].samples;
		weight += p->rows[rows[i]].weight;
	}
	otlp_type(w, &profile->sample_type, otlp_events[event].type, otlp_events[event].unit);
	otlp_type(w, &profile->period_type, otlp_events[event].period_type,
		  otlp_events[event].unit);
	profile->period = otlp_events[event].periodic && samples ? (int64_t)(weight / samples) : 1;
	profile->time_unix_nano = p->begin_real_ns;
	profile->duration_nano = p->end_real_ns - p->begin_real_ns;
	otlp_profile_attributes(w, profile, &q->accounts.of[event], event, samples);
	*ret = profile;
}

/* ---- resources ------------------------------------------------------------------------------- */

static void otlp_resource_value(struct otlp_writer *w, Otlp__Resource *r, const char *key,
				const char *text, int64_t number)
{
	Otlp__KeyValue *a;

	if (text && !*text)
		return;
	OTLP_TAKE(w, a, otlp__key_value);
	OTLP_TAKE(w, a->value, otlp__any_value);
	a->key = (char *)(uintptr_t)key;
	a->value->value_case =
		text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE : OTLP__ANY_VALUE__VALUE_INT_VALUE;
	if (text) {
		a->value->string_value = arena_copy(&w->tables.arena, text, strlen(text) + 1);
		if (a->value->string_value)
			(void)utf8_mend(a->value->string_value);
	} else {
		a->value->int_value = number;
	}
	r->attributes[r->n_attributes++] = a;
}

/* A label's name in the conventions of OpenTelemetry, or its own. */
static const char *otlp_label_key(const char *label)
{
	static const char *const names[][2] = {
		{ "service", "service.name" },
		{ "version", "service.version" },
		{ "namespace", "service.namespace" },
		{ "environment", "deployment.environment.name" },
		{ "pod", "k8s.pod.name" },
		{ "pod_namespace", "k8s.namespace.name" },
		{ "container", "container.name" },
		{ "image", "container.image.name" },
		{ "node", "k8s.node.name" },
		{ "host", "host.name" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(label, names[i][0]) == 0)
			return names[i][1];
	return label;
}

/* Adds the JVM's labels, or, if it has none, its names. */
static void otlp_labels(struct otlp_writer *w, Otlp__Resource *r, const struct profile_process *q)
{
	const char *text = w->p->strings[q->labels], *pod = w->p->strings[q->pod];
	const char *slash = strchr(pod, '/');
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE] = "";

	if (!*labels_get(text, "service", value))
		otlp_resource_value(w, r, "service.name", w->p->strings[q->name], 0);
	if (!*text && slash) {
		snprintf(value, sizeof(value), "%.*s", (int)(slash - pod), pod);
		otlp_resource_value(w, r, "k8s.namespace.name", value, 0);
	}
	if (!*text) {
		otlp_resource_value(w, r, "container.name", w->p->strings[q->container], 0);
		otlp_resource_value(w, r, "k8s.pod.name", slash ? slash + 1 : pod, 0);
	}
	while (r->n_attributes < RESOURCE_ATTRIBUTES_MAX && labels_next_text(&text, key, value)) {
		const char *name = otlp_label_key(key);

		otlp_resource_value(w, r, arena_copy(&w->tables.arena, name, strlen(name) + 1),
				    value, 0);
	}
}

static void otlp_resource(struct otlp_writer *w, Otlp__Resource **ret,
			  const struct profile_process *q)
{
	const char *const *strings = w->p->strings;
	Otlp__Resource *r;

	OTLP_TAKE(w, r, otlp__resource);
	r->attributes =
		arena_take(&w->tables.arena, RESOURCE_ATTRIBUTES_MAX * sizeof(*r->attributes));
	if (!r->attributes)
		return;
	otlp_resource_value(w, r, "process.pid", NULL, q->pid);
	otlp_resource_value(w, r, "process.vpid", q->ns_pid ? NULL : "", q->ns_pid);
	otlp_resource_value(w, r, "process.runtime.version", strings[q->jdk], 0);
	otlp_resource_value(w, r, "container.id", strings[q->container_id], 0);
	otlp_labels(w, r, q);
	*ret = r;
}

static void otlp_scope(struct otlp_writer *w, Otlp__ResourceProfiles *rp)
{
	Otlp__ScopeProfiles *s;

	OTLP_TAKE(w, s, otlp__scope_profiles);
	rp->scope_profiles = arena_copy(&w->tables.arena, &s, sizeof(s));
	rp->n_scope_profiles = 1;
	s->profiles = arena_take(&w->tables.arena, WIRE_EVENT_COUNT * sizeof(*s->profiles));
	OTLP_TAKE(w, s->scope, otlp__instrumentation_scope);
	s->scope->name = (char *)(uintptr_t) "kindling";
	s->scope->version = (char *)(uintptr_t)KINDLING_VERSION;
}

/* ---- the request ----------------------------------------------------------------------------- */

static uint32_t otlp_process_of(const struct profile *p, uint32_t row)
{
	return p->threads[p->rows[row].thread].process;
}

/* Sorts rows by process and event, and otherwise leaves their order. */
static bool otlp_sort(struct otlp_writer *w)
{
	const struct profile *p = w->p;
	size_t keys = (size_t)p->n_processes * WIRE_EVENT_COUNT;
	CLEANUP(freep) uint32_t *begin = calloc(keys + 2, sizeof(*begin));

	if (!begin)
		return false;
	for (uint32_t i = 0; i < p->n_rows; i++)
		begin[otlp_process_of(p, i) * WIRE_EVENT_COUNT + p->rows[i].event + 1]++;
	for (size_t i = 1; i <= keys; i++)
		begin[i] += begin[i - 1];
	for (uint32_t i = 0; i < p->n_rows; i++)
		w->order[begin[otlp_process_of(p, i) * WIRE_EVENT_COUNT + p->rows[i].event]++] = i;
	return true;
}

/* Does row @i begin another process, or (@with_event) another event? */
static bool otlp_is_next(const struct otlp_writer *w, uint32_t i, bool with_event)
{
	uint32_t a = w->order[i - 1], b = w->order[i];

	return otlp_process_of(w->p, a) != otlp_process_of(w->p, b) ||
	       (with_event && w->p->rows[a].event != w->p->rows[b].event);
}

static void otlp_resources(struct otlp_writer *w)
{
	uint32_t n = w->p->n_rows, to;
	Otlp__ResourceProfiles *rp = NULL;
	Otlp__ScopeProfiles *scope;

	w->out.resource_profiles =
		arena_take(&w->tables.arena,
			   ((size_t)w->p->n_processes + 1) * sizeof(*w->out.resource_profiles));
	for (uint32_t from = 0; from < n && !w->tables.arena.failed; from = to) {
		for (to = from + 1; to < n && !otlp_is_next(w, to, true); to++)
			;
		if (from == 0 || otlp_is_next(w, from, false)) {
			OTLP_TAKE(w, rp, otlp__resource_profiles);
			otlp_resource(w, &rp->resource,
				      &w->p->processes[otlp_process_of(w->p, w->order[from])]);
			otlp_scope(w, rp);
			w->out.resource_profiles[w->out.n_resource_profiles++] = rp;
		}
		if (w->tables.arena.failed)
			return;
		scope = rp->scope_profiles[0];
		otlp_profile(w, &scope->profiles[scope->n_profiles++], w->order + from, to - from);
	}
}

static bool otlp_build(struct otlp_writer *w)
{
	const struct profile *p = w->p;

	otlp__export_request__init(&w->out);
	w->locations = calloc((size_t)p->n_frames + 1, sizeof(*w->locations));
	w->chain = calloc((size_t)p->n_nodes + 1, sizeof(*w->chain));
	w->order = calloc((size_t)p->n_rows + 1, sizeof(*w->order));
	if (!otlp_tables_init(&w->tables) || !w->locations || !w->chain || !w->order ||
	    !otlp_sort(w))
		return false;
	otlp_resources(w);
	otlp_dictionary(&w->tables, &w->dictionary);
	w->out.dictionary = &w->dictionary;
	return !w->tables.arena.failed;
}

static int otlp_pack(const struct otlp_writer *w, char **ret, size_t *ret_len)
{
	size_t len = otlp__export_request__get_packed_size(&w->out);
	char *bytes = malloc(len + 1);

	if (!bytes)
		return -ENOMEM;
	otlp__export_request__pack(&w->out, (uint8_t *)bytes);
	*ret = bytes;
	*ret_len = len;
	return 0;
}

int write_otlp(const struct profile *p, bool json, char **ret, size_t *ret_len)
{
	struct otlp_writer w = { .p = p };
	struct text_out t = { 0 };
	int r = -ENOMEM;

	if (otlp_build(&w) && json) {
		protojson_write(&t, &w.out.base);
		json_end_line(&t);
		r = text_take(&t, ret, ret_len);
	} else if (!w.tables.arena.failed && w.out.dictionary) {
		r = otlp_pack(&w, ret, ret_len);
	}
	free(w.locations);
	free(w.chain);
	free(w.order);
	otlp_table_deinit(&w.samples);
	otlp_tables_deinit(&w.tables);
	return r;
}
