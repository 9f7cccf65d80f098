/*
 * Ids for what a sample refers to: every string, method, mapping and node is defined once per
 * epoch, before its first use.
 */
#include "agent/output/writer_priv.h"

#include <string.h>
#include "agent/engine/cpu_timer.h"
#include "agent/events/lock_name.h"
#include "agent/output/roots.h"

uint32_t writer_string_id(const char *s)
{
	struct wire_string record = { .str = wire_text(s) };
	bool is_new;

	if (record.str.len > WIRE_STRING_MAX)
		record.str.len = WIRE_STRING_MAX;
	record.id = dict_id(&writer.strings, dict_hash(s, record.str.len), record.str.len, &is_new);
	if (record.id && is_new && !PUT(PENDING_STRING, wire_put_string, &record))
		writer.torn = true;
	writer.dict_full |= record.id == 0;
	return record.id;
}

static uint32_t method_id(uint64_t where)
{
	struct wire_method record;
	struct walk_method m;
	bool is_new;

	record.id = dict_id(&writer.methods, where, 1, &is_new);
	writer.dict_full |= record.id == 0;
	if (!record.id || !is_new)
		return record.id;
	if (!walker_resolve_method(where, &m))
		m = (struct walk_method){ "", "[unloaded]", "", "" };
	record.class_id = writer_string_id(m.class_name);
	record.name_id = writer_string_id(m.name);
	record.sig_id = writer_string_id(m.signature);
	record.file_id = m.file[0] ? writer_string_id(m.file) : 0;
	if (writer.dict_full)
		return 0;
	if (!PUT(PENDING_METHOD, wire_put_method, &record))
		writer.torn = true;
	return record.id;
}

static uint32_t mapping_id(const struct walk_mapping *m)
{
	struct wire_mapping record = {
		.start = m->start,
		.end = m->end,
		.file_offset = m->file_offset,
		.build_id_len = m->build_id_len,
	};
	bool is_new;

	record.id = dict_id(&writer.mappings, m->start, m->generation, &is_new);
	writer.dict_full |= record.id == 0;
	if (!record.id || !is_new)
		return record.id;
	record.path_id = writer_string_id(m->path);
	memcpy(record.build_id, m->build_id, sizeof(record.build_id));
	if (writer.dict_full)
		return 0;
	if (!PUT(PENDING_MAPPING, wire_put_mapping, &record))
		writer.torn = true;
	return record.id;
}

static void writer_node_label(struct wire_node *n, uint8_t kind, const char *label)
{
	n->kind = kind;
	n->ref = writer_string_id(label);
}

/* The id of the node for @frame with the parent node @parent. */
static uint32_t node_id(uint32_t parent, const struct walk_frame *frame)
{
	uint64_t k1 = (uint64_t)parent << 32 | ((uint64_t)frame->bci & 0xffffff) << 8 | frame->kind;
	struct wire_node n = { .parent = parent, .kind = frame->kind, .line = -1 };
	struct walk_mapping m;
	bool is_new;

	n.id = dict_id(&writer.nodes, frame->where, k1, &is_new);
	writer.dict_full |= n.id == 0;
	if (!n.id || !is_new)
		return n.id;
	if (wire_kind_is_method(frame->kind)) {
		n.ref = method_id(frame->where);
		n.line = walker_resolve_line(frame->where, frame->bci);
	} else if (frame->kind != WIRE_KIND_NATIVE) {
		writer_node_label(&n, frame->kind, (const char *)(uintptr_t)frame->where);
	} else if (walker_resolve_pc(frame->where, &m)) {
		n.ref = mapping_id(&m);
		n.offset = frame->where - m.start + m.file_offset;
	} else {
		writer_node_label(&n, WIRE_KIND_UNKNOWN, "[unknown]");
	}
	if (writer.dict_full)
		return 0; /* the node has an id but no definition: only a RESET helps */
	if (!PUT(PENDING_NODE, wire_put_node, &n))
		writer.torn = true;
	return n.id;
}

static char broken_labels[LABELS_MAX][48];
static const char *broken_causes[LABELS_MAX];

/* "[broken:CAUSE]". Causes are few static strings, compared by address. */
static const char *broken_label(const char *cause)
{
	for (int i = 0; i < LABELS_MAX; i++) {
		if (!broken_causes[i]) {
			size_t n = strlen(cause);

			if (n > sizeof(broken_labels[i]) - 10)
				n = sizeof(broken_labels[i]) - 10;
			memcpy(broken_labels[i], "[broken:", 8);
			memcpy(broken_labels[i] + 8, cause, n);
			memcpy(broken_labels[i] + 8 + n, "]", 2);
			broken_causes[i] = cause;
		}
		if (broken_causes[i] == cause)
			return broken_labels[i];
	}
	return "[broken:other]";
}

static uint32_t stack_node(const struct walk_frame *frames, uint32_t n, const char *broken)
{
	uint32_t node = 0;

	if (broken) {
		struct walk_frame root = {
			.where = (uint64_t)(uintptr_t)broken_label(broken),
			.bci = -1,
			.kind = WIRE_KIND_SYNTHETIC,
		};

		node = node_id(0, &root);
	}
	for (uint32_t i = n; i-- > 0 && !writer.dict_full && !writer.torn;)
		node = node_id(node, &frames[i]);
	return node;
}

static uint32_t class_id(const struct ring_sample *s)
{
	const char *name = walker_resolve_class(s->class_handle);
	static char lock[WIRE_STRING_MAX];

	if (!name)
		return 0;
	if (s->event == WIRE_EVENT_OFFCPU ||
	    (s->event == WIRE_EVENT_LOCK && s->wait == WIRE_WAIT_PARK)) {
		lock_name(name, lock, sizeof(lock));
		name = lock;
	}
	return writer_string_id(name);
}

static bool is_exited(const struct ring_sample *s)
{
	return s->event == WIRE_EVENT_CPU && s->n_frames == 1 &&
	       s->frames[0].kind == WIRE_KIND_SYNTHETIC &&
	       strcmp((const char *)(uintptr_t)s->frames[0].where, ENGINE_EXITED) == 0;
}

/* CPU time without a stack gets the common frames of threads with that name. */
static uint32_t exited_node(const struct ring_sample *s)
{
	struct walk_frame frames[1 + ROOTS_DEPTH] = { s->frames[0] };
	uint32_t n = 1 + roots_of(writer.epoch, s->name, frames + 1);

	return stack_node(frames, n, NULL);
}

static uint32_t sample_node(const struct ring_sample *s)
{
	uint32_t node;

	if (is_exited(s))
		return exited_node(s);
	node = stack_node(s->frames, s->n_frames, s->broken);
	if (s->event == WIRE_EVENT_CPU && s->name[0] && !s->virtual_id && !s->broken &&
	    !writer.dict_full && !writer.torn)
		roots_seen(writer.epoch, s->name, s->frames, s->n_frames);
	return node;
}

bool writer_define(const struct ring_sample *s, struct writer_ids *ret)
{
	*ret = (struct writer_ids){ 0 };
	writer.dict_full = false;
	ret->class_id = class_id(s);
	if (!writer.dict_full && !writer.torn)
		ret->node = sample_node(s);
	if (!writer.dict_full && !writer.torn && s->n_owner_frames)
		ret->owner_node = stack_node(s->frames + s->n_frames, s->n_owner_frames, NULL);
	if (!writer.dict_full && !writer.torn && s->context_bytes)
		ret->context = writer_context_id(s->context, s->context_bytes);
	return !writer.dict_full && !writer.torn;
}
