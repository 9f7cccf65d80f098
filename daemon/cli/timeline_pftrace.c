/*
 * A timeline as a trace for Perfetto, written packet by packet. Each thread has one track for its
 * waits, one for its time off the CPU, and one for its samples. The slices of a track must be
 * nested: an interval that overlaps another one in part goes to a further track of the same name (a
 * lane). Stacks are interned: the packet that is the first to use one contains its text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/timeline_files.h"
#include "daemon/ground/utf8.h"
#include "daemon/timeline/timeline.h"
#include "perfetto.pb-c.h"

#define SEQUENCE      1
#define CLOCK_REAL    1 /* BuiltinClock: BUILTIN_CLOCK_REALTIME */
#define STATE_CLEARED 1 /* TracePacket.SequenceFlags */
#define STATE_NEEDED  2
#define LANES_MAX     4 /* of one thread and kind */
#define NOTES_MAX     8 /* annotations of one event */
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 }; /* TrackEvent.Type */

/* The tracks of a thread: TRACK_LOCK is the thread's own, the others are below it. */
enum track { TRACK_LOCK, TRACK_OFFCPU, TRACK_CPU, TRACK_WALL, TRACK_COUNT };
static const char *const track_names[TRACK_COUNT] = { "waits", "off the CPU", "CPU samples",
						      "wall-clock samples" };
static const char *const kinds[TRACK_COUNT] = { "lock", "offcpu", "cpu", "wall" };

struct tracing {
	const cJSON *answer;
	FILE *to;
	double from_ns;
	const cJSON **threads, **frames, **locks, **traces; /* each list by number */
	struct node {
		unsigned parent, frame;
		bool defined;
	} * nodes;
	size_t n_threads, n_frames, n_locks, n_traces, n_nodes;
	bool *described; /* by thread, kind and lane: was the track written? */
	uint64_t flows;
	bool first;
};

/* ---- packets --------------------------------------------------------------------------------- */

static void pftrace_put(struct tracing *t, Perfetto__TracePacket *packet)
{
	Perfetto__TracePacket *list[] = { packet };
	Perfetto__Trace trace = PERFETTO__TRACE__INIT;
	uint8_t *bytes;
	size_t len;

	packet->has_trusted_packet_sequence_id = 1;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->has_sequence_flags = 1;
	packet->sequence_flags = t->first ? STATE_CLEARED : STATE_NEEDED;
	t->first = false;
	/* a trace is a sequence of packets, so each may be written as a trace of one packet */
	trace.n_packet = 1;
	trace.packet = list;
	len = perfetto__trace__get_packed_size(&trace);
	bytes = malloc(len + 1);
	if (bytes) {
		perfetto__trace__pack(&trace, bytes);
		(void)!fwrite(bytes, 1, len, t->to);
	}
	free(bytes);
}

static void put_track(struct tracing *t, Perfetto__TrackDescriptor *track)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	track->has_uuid = 1;
	packet.track_descriptor = track;
	pftrace_put(t, &packet);
}

static uint64_t process_track(void)
{
	return 1;
}

static uint64_t band_track(unsigned band)
{
	return 2 + band;
}

static uint64_t thread_track(unsigned thread, enum track track, unsigned lane)
{
	return 16 + ((uint64_t)thread * TRACK_COUNT + track) * LANES_MAX + lane;
}

static void put_process(struct tracing *t)
{
	Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;

	process.has_pid = 1;
	process.pid = (int)json_number_of(t->answer, "pid");
	process.process_name = (char *)(uintptr_t)json_text_of(t->answer, "name");
	track.uuid = process_track();
	track.process = &process;
	put_track(t, &track);
	for (unsigned i = 0; i < TIMELINE_BAND_COUNT; i++) {
		Perfetto__TrackDescriptor band = PERFETTO__TRACK_DESCRIPTOR__INIT;

		band.uuid = band_track(i);
		band.name = (char *)(uintptr_t)timeline_band_names[i];
		band.has_parent_uuid = 1;
		band.parent_uuid = process_track();
		put_track(t, &band);
	}
}

/* Describes a track, once. A thread without a tid (a virtual one, or one whose number is
 * unknown) gets a number that no kernel assigns. */
static uint64_t describe(struct tracing *t, unsigned thread, enum track which, unsigned lane)
{
	uint64_t uuid = thread_track(thread, which, lane);
	Perfetto__ThreadDescriptor of = PERFETTO__THREAD_DESCRIPTOR__INIT;
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	const cJSON *json = thread ? t->threads[thread - 1] : NULL;
	double tid = json_number_of(json, "tid");
	bool *done = &t->described[uuid - 16];

	if (*done)
		return uuid;
	*done = true;
	track.uuid = uuid;
	if (which == TRACK_LOCK && lane == 0) {
		of.has_pid = of.has_tid = 1;
		of.pid = (int)json_number_of(t->answer, "pid");
		of.tid = tid > 0 ? (int)tid : (1 << 30) + (int)thread;
		of.thread_name = (char *)(uintptr_t)(json ? json_text_of(json, "thread")
							  : "[unknown threads]");
		track.thread = &of;
	} else {
		track.has_parent_uuid = 1;
		track.parent_uuid = describe(t, thread, TRACK_LOCK, 0);
		track.name = (char *)(uintptr_t)track_names[which];
	}
	put_track(t, &track);
	return uuid;
}

/* ---- events ---------------------------------------------------------------------------------- */

struct one_event {
	Perfetto__TrackEvent event;
	Perfetto__InternedString stacks[2], *stack_list[2];
	Perfetto__InternedData interned;
	Perfetto__DebugAnnotation notes[NOTES_MAX], *note_list[NOTES_MAX];
	char *texts[NOTES_MAX + 2]; /* the values of its annotations, freed with it */
	size_t n_texts;
	char *category[1];
	uint64_t flow[1];
};

static void event_begin(struct one_event *e, int type, uint64_t track, const char *name,
			const char *category)
{
	static const Perfetto__TrackEvent empty = PERFETTO__TRACK_EVENT__INIT;
	static const Perfetto__InternedData none = PERFETTO__INTERNED_DATA__INIT;

	e->event = empty;
	e->interned = none;
	e->n_texts = 0;
	e->event.has_type = e->event.has_track_uuid = 1;
	e->event.type = type;
	e->event.track_uuid = track;
	e->event.name = (char *)(uintptr_t)name;
	e->event.debug_annotations = e->note_list;
	if (category) {
		e->category[0] = (char *)(uintptr_t)category;
		e->event.categories = e->category;
		e->event.n_categories = 1;
	}
}

static void event_put(struct tracing *t, struct one_event *e, double at)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.has_timestamp = packet.has_timestamp_clock_id = 1;
	packet.timestamp = (uint64_t)((int64_t)t->from_ns + (int64_t)at);
	packet.timestamp_clock_id = CLOCK_REAL;
	packet.track_event = &e->event;
	if (e->interned.n_debug_annotation_string_values)
		packet.interned_data = &e->interned;
	pftrace_put(t, &packet);
	while (e->n_texts)
		free(e->texts[--e->n_texts]);
}

static Perfetto__DebugAnnotation *note(struct one_event *e, const char *name)
{
	static const Perfetto__DebugAnnotation empty = PERFETTO__DEBUG_ANNOTATION__INIT;
	size_t i = e->event.n_debug_annotations++;

	e->notes[i] = empty;
	e->notes[i].name = (char *)(uintptr_t)name;
	return e->note_list[i] = &e->notes[i];
}

/* Adds an annotation with a copy of @text. */
static void note_text(struct one_event *e, const char *name, const char *text)
{
	char *copy = strdup(text);

	if (copy && e->event.n_debug_annotations < NOTES_MAX)
		note(e, name)->string_value = e->texts[e->n_texts++] = copy;
	else
		free(copy);
}

static void note_number(struct one_event *e, const char *name, double n)
{
	Perfetto__DebugAnnotation *a;

	if (e->event.n_debug_annotations == NOTES_MAX)
		return;
	a = note(e, name);
	a->has_uint_value = 1;
	a->uint_value = (uint64_t)n;
}

/* Writes one frame in each line, the leaf first. */
static char *pftrace_stack_text(const struct tracing *t, unsigned node)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	for (unsigned i = 0; f && node && node < t->n_nodes && i < t->n_nodes; i++) {
		const cJSON *frame =
			t->nodes[node].frame < t->n_frames ? t->frames[t->nodes[node].frame] : NULL;
		const cJSON *name = cJSON_GetArrayItem(frame, 0);

		fprintf(f, "%s%s", i ? "\n" : "", cJSON_IsString(name) ? name->valuestring : "?");
		node = t->nodes[node].parent;
	}
	if (f)
		fclose(f);
	return text;
}

static void note_stack(struct tracing *t, struct one_event *e, const char *name, unsigned node)
{
	static const Perfetto__InternedString empty = PERFETTO__INTERNED_STRING__INIT;
	size_t i = e->interned.n_debug_annotation_string_values;
	Perfetto__DebugAnnotation *a;
	char *text;

	if (!node || node >= t->n_nodes || e->event.n_debug_annotations == NOTES_MAX)
		return;
	if (!t->nodes[node].defined) {
		text = pftrace_stack_text(t, node);
		if (!text)
			return;
		t->nodes[node].defined = true;
		e->stacks[i] = empty;
		e->stacks[i].has_iid = e->stacks[i].has_str = 1;
		e->stacks[i].iid = node;
		e->stacks[i].str.data = (uint8_t *)text;
		e->stacks[i].str.len = strlen(text);
		e->texts[e->n_texts++] = text;
		e->stack_list[i] = &e->stacks[i];
		e->interned.debug_annotation_string_values = e->stack_list;
		e->interned.n_debug_annotation_string_values = i + 1;
	}
	a = note(e, name);
	a->has_string_value_iid = 1;
	a->string_value_iid = node;
}

/* Entry @number - 1 of a list of pairs, as "first@second"; "" = none. */
static void pair_text(const cJSON **list, size_t n, double number, char *buf, size_t size)
{
	const cJSON *pair = number >= 1 && number <= (double)n ? list[(size_t)number - 1] : NULL;
	const cJSON *a = cJSON_GetArrayItem(pair, 0), *b = cJSON_GetArrayItem(pair, 1);

	buf[0] = '\0';
	if (cJSON_IsString(a) && cJSON_IsString(b))
		snprintf(buf, size, "%s@%s", a->valuestring, b->valuestring);
	(void)utf8_mend(buf); /* readers of a trace refuse half a character */
}

static const char *pftrace_thread_name(const struct tracing *t, double number)
{
	return number >= 1 && number <= (double)t->n_threads
		       ? json_text_of(t->threads[(size_t)number - 1], "thread")
		       : "";
}

static void note_trace(const struct tracing *t, struct one_event *e, double number)
{
	const cJSON *ids =
		number >= 1 && number <= (double)t->n_traces ? t->traces[(size_t)number - 1] : NULL;
	const cJSON *trace = cJSON_GetArrayItem(ids, 0), *span = cJSON_GetArrayItem(ids, 1);

	if (cJSON_IsString(trace))
		note_text(e, "trace_id", trace->valuestring);
	if (cJSON_IsString(span))
		note_text(e, "span_id", span->valuestring);
}

/* Puts a moment into the owner's track and connects the wait's slice with it, which is shown as
 * an arrow. */
static void put_arrow(struct tracing *t, const double *v, const char *lock)
{
	unsigned owner = (unsigned)v[COLUMN_OWNER];
	struct one_event e;
	char name[1100];

	if (!owner || owner > t->n_threads)
		return;
	snprintf(name, sizeof(name), "holds %.900s", *lock ? lock : "a lock");
	(void)utf8_mend(name);
	event_begin(&e, INSTANT, describe(t, owner, TRACK_LOCK, 0), name, "lock");
	e.flow[0] = t->flows;
	e.event.terminating_flow_ids = e.flow;
	e.event.n_terminating_flow_ids = 1;
	note_text(&e, "waiter", pftrace_thread_name(t, v[COLUMN_THREAD]));
	event_put(t, &e, v[COLUMN_AT]);
}

static void pftrace_put_interval(struct tracing *t, uint64_t track, const char *category,
				 const char *reason, const double *v)
{
	struct one_event e, end;
	char lock[1024], name[1100];

	pair_text(t->locks, t->n_locks, v[COLUMN_LOCK], lock, sizeof(lock));
	snprintf(name, sizeof(name), "%s%s%.20s%s%.900s",
		 (unsigned)v[COLUMN_FLAGS] & TIMELINE_OPEN ? "not ended: " : "",
		 (unsigned)v[COLUMN_FLAGS] & TIMELINE_IDLE ? "idle: " : "", reason,
		 *lock ? " " : "", lock);
	(void)utf8_mend(name);
	event_begin(&e, SLICE_BEGIN, track, name, category);
	note_number(&e, "ns", v[COLUMN_LENGTH]);
	note_stack(t, &e, "stack", (unsigned)v[COLUMN_STACK]);
	note_stack(t, &e, "owner_stack", (unsigned)v[COLUMN_OWNER_STACK]);
	if (v[COLUMN_OWNER] > 0) {
		note_text(&e, "owner", pftrace_thread_name(t, v[COLUMN_OWNER]));
		e.flow[0] = ++t->flows;
		e.event.flow_ids = e.flow;
		e.event.n_flow_ids = 1;
	}
	if (v[COLUMN_RUNQUEUE] > 0)
		note_number(&e, "runqueue_ns", v[COLUMN_RUNQUEUE]);
	if (v[COLUMN_TRACE] > 0)
		note_trace(t, &e, v[COLUMN_TRACE]);
	event_put(t, &e, v[COLUMN_AT]);
	event_begin(&end, SLICE_END, track, NULL, NULL);
	event_put(t, &end, v[COLUMN_AT] + v[COLUMN_LENGTH]);
	if (v[COLUMN_OWNER] > 0)
		put_arrow(t, v, lock);
}

static void pftrace_put_moment(struct tracing *t, enum track which, const double *v)
{
	struct one_event e;

	event_begin(&e, INSTANT, describe(t, (unsigned)v[COLUMN_THREAD], which, 0), kinds[which],
		    kinds[which]);
	note_number(&e, "ns", v[COLUMN_LENGTH]);
	note_stack(t, &e, "stack", (unsigned)v[COLUMN_STACK]);
	if (v[COLUMN_TRACE] > 0)
		note_trace(t, &e, v[COLUMN_TRACE]);
	event_put(t, &e, v[COLUMN_AT]);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void pftrace_columns(const struct tracing *t, const cJSON *row, double *v)
{
	const cJSON *cell = row ? row->child : NULL;

	for (int i = 0; i < COLUMNS_OF_TIMELINE; i++, cell = cell ? cell->next : NULL)
		v[i] = cJSON_IsNumber(cell) ? cell->valuedouble : 0;
	if (v[COLUMN_THREAD] < 0 || v[COLUMN_THREAD] > (double)t->n_threads)
		v[COLUMN_THREAD] = 0;
}

static const char *reason_name(const struct tracing *t, const char *kind, double reason)
{
	const cJSON *name =
		cJSON_GetArrayItem(json_get(json_get(t->answer, "reasons"), kind), (int)reason);

	return cJSON_IsString(name) ? name->valuestring : "other";
}

struct interval {
	double v[COLUMNS_OF_TIMELINE];
};

/* Sorts by thread, then by begin, longer ones first: the order in which slices nest. */
static int pftrace_by_begin(const void *a, const void *b)
{
	const double *x = ((const struct interval *)a)->v, *y = ((const struct interval *)b)->v;

	if (x[COLUMN_THREAD] < y[COLUMN_THREAD] || x[COLUMN_THREAD] > y[COLUMN_THREAD])
		return x[COLUMN_THREAD] < y[COLUMN_THREAD] ? -1 : 1;
	if (x[COLUMN_AT] < y[COLUMN_AT] || x[COLUMN_AT] > y[COLUMN_AT])
		return x[COLUMN_AT] < y[COLUMN_AT] ? -1 : 1;
	return x[COLUMN_LENGTH] > y[COLUMN_LENGTH] ? -1 : x[COLUMN_LENGTH] < y[COLUMN_LENGTH];
}

/* Puts intervals into lanes in which they do not overlap; the last lane takes those that fit in
 * no other. */
static void put_lanes(struct tracing *t, enum track which, const struct interval *list, size_t n)
{
	double ends[LANES_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		const double *v = list[i].v;
		unsigned lane = 0;

		if (!i || v[COLUMN_THREAD] > list[i - 1].v[COLUMN_THREAD])
			for (int k = 0; k < LANES_MAX; k++)
				ends[k] = -1e18;
		while (lane < LANES_MAX - 1 && ends[lane] > v[COLUMN_AT])
			lane++;
		ends[lane] = v[COLUMN_AT] + v[COLUMN_LENGTH];
		pftrace_put_interval(t, describe(t, (unsigned)v[COLUMN_THREAD], which, lane),
				     kinds[which], reason_name(t, kinds[which], v[COLUMN_REASON]),
				     v);
	}
}

static bool pftrace_put_intervals(struct tracing *t, enum track which)
{
	const cJSON *rows = json_get(t->answer, kinds[which]), *row;
	size_t n = 0, max = (size_t)cJSON_GetArraySize(rows);
	struct interval *list = calloc(max + 1, sizeof(*list));

	if (!list)
		return false;
	cJSON_ArrayForEach(row, rows) if (n < max) pftrace_columns(t, row, list[n++].v);
	qsort(list, n, sizeof(*list), pftrace_by_begin);
	put_lanes(t, which, list, n);
	free(list);
	return true;
}

static void pftrace_put_moments(struct tracing *t, enum track which)
{
	double v[COLUMNS_OF_TIMELINE];
	const cJSON *row;

	cJSON_ArrayForEach(row, json_get(t->answer, kinds[which]))
	{
		pftrace_columns(t, row, v);
		pftrace_put_moment(t, which, v);
	}
}

static void put_bands(struct tracing *t)
{
	double v[COLUMNS_OF_TIMELINE];
	const cJSON *row;

	cJSON_ArrayForEach(row, json_get(t->answer, "band"))
	{
		pftrace_columns(t, row, v);
		if (v[COLUMN_REASON] >= 0 && v[COLUMN_REASON] < TIMELINE_BAND_COUNT)
			pftrace_put_interval(t, band_track((unsigned)v[COLUMN_REASON]), "band",
					     reason_name(t, "band", v[COLUMN_REASON]), v);
	}
}

/* The elements of a list as an array: cJSON itself finds them only one after the other. */
static const cJSON **pftrace_by_number(const cJSON *list, size_t *ret_n)
{
	size_t n = (size_t)cJSON_GetArraySize(list), i = 0;
	const cJSON **all = calloc(n + 1, sizeof(*all)), *e;

	if (all)
		cJSON_ArrayForEach(e, list) if (i < n) all[i++] = e;
	*ret_n = i;
	return all;
}

static bool read_tables(struct tracing *t)
{
	const cJSON *nodes = json_get(t->answer, "nodes"), *e;
	size_t max = (size_t)cJSON_GetArraySize(nodes);

	t->threads = pftrace_by_number(json_get(t->answer, "threads"), &t->n_threads);
	t->frames = pftrace_by_number(json_get(t->answer, "frames"), &t->n_frames);
	t->locks = pftrace_by_number(json_get(t->answer, "locks"), &t->n_locks);
	t->traces = pftrace_by_number(json_get(t->answer, "traces"), &t->n_traces);
	t->nodes = calloc(max + 1, sizeof(*t->nodes));
	t->described = calloc((t->n_threads + 1) * TRACK_COUNT * LANES_MAX, 1);
	if (!t->threads || !t->frames || !t->locks || !t->traces || !t->nodes || !t->described)
		return false;
	cJSON_ArrayForEach(e, nodes)
	{
		const cJSON *parent = e->child, *frame = parent ? parent->next : NULL;

		if (t->n_nodes == max || !cJSON_IsNumber(parent) || !cJSON_IsNumber(frame))
			return false;
		/* parents precede their children, so every stack ends */
		if (t->n_nodes && parent->valuedouble >= (double)t->n_nodes)
			return false;
		t->nodes[t->n_nodes++] = (struct node){ (unsigned)parent->valuedouble,
							(unsigned)frame->valuedouble, false };
	}
	return true;
}

char *timeline_pftrace(const cJSON *answer, size_t *ret_len)
{
	struct tracing t = { .answer = answer,
			     .from_ns = json_number_of(answer, "from_ns"),
			     .first = true };
	char *bytes = NULL;
	bool good;

	*ret_len = 0;
	t.to = open_memstream(&bytes, ret_len);
	good = t.to && read_tables(&t);
	if (good) {
		put_process(&t);
		good = pftrace_put_intervals(&t, TRACK_LOCK) &&
		       pftrace_put_intervals(&t, TRACK_OFFCPU);
		pftrace_put_moments(&t, TRACK_CPU);
		pftrace_put_moments(&t, TRACK_WALL);
		put_bands(&t);
	}
	if (t.to && fclose(t.to) != 0)
		good = false;
	free(t.threads);
	free(t.frames);
	free(t.locks);
	free(t.traces);
	free(t.nodes);
	free(t.described);
	if (!good) {
		free(bytes);
		bytes = NULL;
	}
	return bytes;
}
