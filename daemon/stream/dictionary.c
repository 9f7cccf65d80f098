/*
 * The meaning of an agent's ids: strings, methods, mappings and nodes (a stack is the path from a
 * node to its root). An id is defined once, before its first use. One stream's dictionary takes at
 * most MEMORY_MAX.
 */
#include "daemon/stream/stream_priv.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/utf8.h"

#define MEMORY_MAX (64u << 20) /* of one stream's dictionary, bytes */
#define TEXT_BYTES \
	(16u << 10) /* short texts, of which there are thousands, share blocks of this size */

struct stream_text {
	struct stream_text *next;
	uint32_t used, size;
	char bytes[];
};

static int dictionary_full(struct fault *f)
{
	return fault_set(f, ENOMEM, FAULT_STREAM, "the agent defines more than %u MiB of names",
			 MEMORY_MAX >> 20);
}

int dictionary_charge(struct stream *s, size_t bytes, struct fault *f)
{
	if (bytes > MEMORY_MAX - s->dictionary.memory)
		return dictionary_full(f);
	s->dictionary.memory += bytes;
	return 0;
}

/* Makes room for id @id in an array of @size-byte elements. Ids come in order, so doubling is
 * cheap; a sender that skips ids uses up its own memory bound. */
int dictionary_grow(struct stream *s, void **array, uint32_t *n, uint32_t id, size_t size,
		    struct fault *f)
{
	uint32_t want = *n ? *n : 256;
	void *p;
	int r;

	if (id < *n)
		return 0;
	while (want <= id)
		want *= 2;
	r = dictionary_charge(s, (want - *n) * size, f);
	if (r < 0)
		return r;
	p = calloc(want, size); /* pages of a large array take memory only once they are written */
	if (!p)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for the agent's names");
	if (*n)
		memcpy(p, *array, *n * size);
	free(*array);
	*array = p;
	*n = want;
	return 0;
}

bool dictionary_has_string(const struct stream *s, uint32_t id)
{
	return id < s->dictionary.n_strings && s->dictionary.strings[id];
}

const char *dictionary_string(const struct stream *s, uint32_t id)
{
	return dictionary_has_string(s, id) ? s->dictionary.strings[id] : "";
}

/* Returns a class's name in its printable form, "java.lang.String", into which it changes the
 * table's own copy. */
const char *dictionary_class(struct stream *s, uint32_t id)
{
	if (!dictionary_has_string(s, id))
		return "";
	for (char *p = s->dictionary.strings[id]; *p; p++)
		if (*p == '/')
			*p = '.';
	return s->dictionary.strings[id];
}

static bool has_mapping(const struct stream *s, uint32_t id)
{
	return id < s->dictionary.n_mappings && s->dictionary.mappings[id].id;
}

static int dictionary_twice(struct fault *f, const char *what, uint32_t id)
{
	return fault_set(f, EBADMSG, FAULT_STREAM,
			 "%s %u is defined twice, or from undefined names", what, id);
}

/* Returns a malloc'ed copy of @str without invalid UTF-8, or NULL without memory. */
char *dictionary_clean_copy(struct wire_str str, size_t *ret_len)
{
	char clean[3 * WIRE_STRING_MAX + 1];
	char *copy;

	*ret_len = utf8_clean(clean, str.p, str.len);
	copy = malloc(*ret_len + 1);
	if (copy)
		memcpy(copy, clean, *ret_len + 1);
	return copy;
}

/* Room for @bytes in the dictionary's blocks of texts; NULL without memory or at MEMORY_MAX. */
static char *dictionary_text_room(struct stream *s, size_t bytes, struct fault *f)
{
	struct stream_text *t = s->dictionary.texts;
	size_t size = bytes > TEXT_BYTES ? bytes : TEXT_BYTES;

	if (!t || bytes > t->size - t->used) {
		t = dictionary_charge(s, sizeof(*t) + size, f) < 0 ? NULL
								   : malloc(sizeof(*t) + size);
		if (!t)
			return NULL;
		t->next = s->dictionary.texts;
		t->used = 0;
		t->size = (uint32_t)size;
		s->dictionary.texts = t;
	}
	t->used += (uint32_t)bytes;
	return t->bytes + t->used - bytes;
}

int dictionary_add_string(struct stream *s, const struct wire_string *w, struct fault *f)
{
	char clean[3 * WIRE_STRING_MAX + 1], *text;
	size_t len;
	int r;

	r = dictionary_grow(s, (void **)&s->dictionary.strings, &s->dictionary.n_strings, w->id,
			    sizeof(*s->dictionary.strings), f);
	if (r < 0)
		return r;
	if (s->dictionary.strings[w->id])
		return dictionary_twice(f, "string", w->id);
	len = utf8_clean(clean, w->str.p, w->str.len);
	text = dictionary_text_room(s, len + 1, f);
	if (!text)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for the agent's names");
	memcpy(text, clean, len + 1);
	s->dictionary.strings[w->id] = text;
	return 0;
}

int dictionary_add_method(struct stream *s, const struct wire_method *w, struct fault *f)
{
	int r = dictionary_grow(s, (void **)&s->dictionary.methods, &s->dictionary.n_methods, w->id,
				sizeof(*s->dictionary.methods), f);
	struct stream_method *m;

	if (r < 0)
		return r;
	m = &s->dictionary.methods[w->id];
	if (m->name_id || !dictionary_has_string(s, w->class_id) ||
	    !dictionary_has_string(s, w->name_id) || !dictionary_has_string(s, w->sig_id) ||
	    (w->file_id && !dictionary_has_string(s, w->file_id)))
		return dictionary_twice(f, "method", w->id);
	*m = (struct stream_method){ w->class_id, w->name_id, w->sig_id, w->file_id };
	/* a class's name has its printable form in the table: java/lang/String ->
	 * java.lang.String */
	for (char *p = s->dictionary.strings[w->class_id]; *p; p++)
		if (*p == '/')
			*p = '.';
	return 0;
}

int dictionary_add_mapping(struct stream *s, const struct wire_mapping *w, struct fault *f)
{
	int r = dictionary_grow(s, (void **)&s->dictionary.mappings, &s->dictionary.n_mappings,
				w->id, sizeof(*s->dictionary.mappings), f);

	if (r < 0)
		return r;
	if (s->dictionary.mappings[w->id].id || !dictionary_has_string(s, w->path_id))
		return dictionary_twice(f, "mapping", w->id);
	s->dictionary.mappings[w->id] = *w;
	if (s->ops.on_mapping)
		s->ops.on_mapping(s->userdata, w, dictionary_string(s, w->path_id));
	return 0;
}

bool dictionary_has_node(const struct stream *s, uint32_t id)
{
	return id < s->dictionary.n_nodes && s->dictionary.nodes[id].depth;
}

static struct stream_frame_entry dictionary_frame_of(const struct wire_node *w)
{
	uint64_t offset = w->offset < STREAM_OFFSET_MAX ? w->offset : STREAM_OFFSET_MAX;
	bool native = w->kind == WIRE_KIND_NATIVE;

	return (struct stream_frame_entry){
		.ref = w->ref,
		.line = native ? (int32_t)(uint32_t)offset : w->line,
		.kind = w->kind,
		.offset_high = native ? (uint8_t)(offset >> 32) : 0,
	};
}

/* The first node below STREAM_DEPTH_MAX stands for all deeper ones: their entries are copies of
 * it. */
static int dictionary_node_of(struct stream *s, const struct wire_node *w,
			      struct stream_node_entry *ret, struct fault *f)
{
	const struct stream_node_entry *parent = w->parent ? &s->dictionary.nodes[w->parent] : NULL;
	const struct stream_frame_entry frame = dictionary_frame_of(w);
	unsigned depth = parent ? parent->depth + 1u : 1;
	uint32_t at;
	int r;

	if (depth > STREAM_DEPTH_MAX + 1) {
		*ret = *parent;
		return 0;
	}
	r = frames_add(s, &frame, &at, f);
	if (r < 0)
		return r;
	*ret = (struct stream_node_entry){
		.parent = w->parent & (STREAM_NODES_MAX - 1),
		.frame = at & (STREAM_NODES_MAX - 1),
		.depth = depth & 4095,
	};
	return 0;
}

int dictionary_add_node(struct stream *s, const struct wire_node *w, struct fault *f)
{
	bool ref_ok;
	int r;

	if (w->id >= STREAM_NODES_MAX)
		return dictionary_full(f);
	r = dictionary_grow(s, (void **)&s->dictionary.nodes, &s->dictionary.n_nodes, w->id,
			    sizeof(*s->dictionary.nodes), f);
	if (r < 0)
		return r;
	if (wire_kind_is_method(w->kind))
		ref_ok = w->ref < s->dictionary.n_methods && s->dictionary.methods[w->ref].name_id;
	else if (w->kind == WIRE_KIND_NATIVE)
		ref_ok = has_mapping(s, w->ref);
	else /* only the daemon adds kernel frames and classes */
		ref_ok = w->kind != WIRE_KIND_KERNEL && w->kind != WIRE_KIND_CLASS &&
			 dictionary_has_string(s, w->ref);
	/* a parent is defined before its child, so no path can be a cycle */
	if (!ref_ok || dictionary_has_node(s, w->id) ||
	    (w->parent && !dictionary_has_node(s, w->parent)))
		return dictionary_twice(f, "node", w->id);
	return dictionary_node_of(s, w, &s->dictionary.nodes[w->id], f);
}

void dictionary_forget(struct stream *s)
{
	while (s->dictionary.texts) {
		struct stream_text *next = s->dictionary.texts->next;

		free(s->dictionary.texts);
		s->dictionary.texts = next;
	}
	free(s->dictionary.strings);
	free(s->dictionary.methods);
	free(s->dictionary.mappings);
	free(s->dictionary.nodes);
	frames_forget(s);
	s->dictionary.strings = NULL;
	s->dictionary.methods = NULL;
	s->dictionary.mappings = NULL;
	s->dictionary.nodes = NULL;
	s->dictionary.n_strings = s->dictionary.n_methods = s->dictionary.n_mappings =
		s->dictionary.n_nodes = 0;
	s->dictionary.memory = 0;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool stream_parent(const struct stream *s, uint32_t node, uint32_t *ret_parent)
{
	if (!dictionary_has_node(s, node))
		return false;
	*ret_parent = s->dictionary.nodes[node].parent;
	return true;
}

bool stream_node(const struct stream *s, uint32_t node, struct stream_frame *ret,
		 uint32_t *ret_parent)
{
	const struct stream_node_entry *n;
	const struct stream_frame_entry *at;

	if (!dictionary_has_node(s, node))
		return false;
	n = &s->dictionary.nodes[node];
	at = &s->dictionary.frames.list[n->frame];
	*ret = (struct stream_frame){
		.kind = at->kind,
		.line = at->line,
		.class_name = "",
		.method = "",
		.signature = "",
		.file = "",
		.module = "",
	};
	*ret_parent = n->parent;
	if (n->depth > STREAM_DEPTH_MAX) {
		ret->kind = WIRE_KIND_SYNTHETIC;
		ret->line = -1;
		ret->method = "[deeper stack cut]";
		return true;
	}
	if (wire_kind_is_method(at->kind)) {
		const struct stream_method *m = &s->dictionary.methods[at->ref];

		ret->class_name = dictionary_string(s, m->class_id);
		ret->method = dictionary_string(s, m->name_id);
		ret->signature = dictionary_string(s, m->sig_id);
		ret->file = dictionary_string(s, m->file_id);
		ret->method_id = at->ref;
		ret->class_id = m->class_id;
		ret->name_id = m->name_id;
		ret->signature_id = m->sig_id;
		ret->file_id = m->file_id;
	} else if (at->kind == WIRE_KIND_NATIVE) {
		ret->module = dictionary_string(s, s->dictionary.mappings[at->ref].path_id);
		ret->line = -1;
		ret->offset = (uint64_t)at->offset_high << 32 | (uint32_t)at->line;
	} else {
		ret->method = dictionary_string(s, at->ref);
	}
	return true;
}

bool stream_node_method(const struct stream *s, uint32_t node, struct stream_frame *ret)
{
	const struct stream_node_entry *n;
	const struct stream_frame_entry *at;

	if (!dictionary_has_node(s, node))
		return false;
	n = &s->dictionary.nodes[node];
	at = &s->dictionary.frames.list[n->frame];
	ret->kind = at->kind;
	ret->line = at->line;
	ret->method_id = at->ref;
	return n->depth <= STREAM_DEPTH_MAX && wire_kind_is_method(at->kind);
}

uint8_t stream_node_mark(const struct stream *s, uint32_t node)
{
	return dictionary_has_node(s, node) ? s->dictionary.nodes[node].mark : 0;
}

void stream_mark_node(const struct stream *s, uint32_t node, uint8_t mark)
{
	if (dictionary_has_node(s, node))
		s->dictionary.nodes[node].mark = mark;
}

void stream_forget_marks(const struct stream *s)
{
	for (uint32_t node = 0; node < s->dictionary.n_nodes; node++)
		stream_mark_node(s, node, 0);
}
