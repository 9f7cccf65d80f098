/*
 * The table of an agent's context ids: the trace and the span that a tracer had under way in a
 * thread. Agents use few ids and give them new meanings, so the table stays small. Texts must be
 * visible ASCII, as the protocol demands; so no output needs to escape them.
 */
#include "daemon/stream/stream_priv.h"

#include <errno.h>
#include <string.h>

static bool contexts_is_visible(struct wire_str text)
{
	for (uint32_t i = 0; i < text.len; i++)
		if (text.p[i] < 0x21 || text.p[i] > 0x7e)
			return false;
	return true;
}

static size_t contexts_block_bytes(const struct stream_context *c)
{
	/* one block holds both texts, the trace's first */
	return c->trace_id ? (size_t)(c->span_id - c->trace_id) + strlen(c->span_id) + 1 +
				     STREAM_BLOCK_BYTES
			   : 0;
}

static void contexts_replace(struct stream *s, uint32_t id, struct stream_context with)
{
	struct stream_context *c = &s->contexts.table[id];

	s->contexts.memory -= contexts_block_bytes(c);
	free((char *)(uintptr_t)c->trace_id);
	*c = with;
	s->contexts.memory += contexts_block_bytes(c);
}

int contexts_add(struct stream *s, const struct wire_context *w, struct fault *f)
{
	struct stream_contexts *c = &s->contexts;
	size_t trace_len = w->trace_id.len, span_len = w->span_id.len;
	char *text;

	if (!contexts_is_visible(w->trace_id) || !contexts_is_visible(w->span_id))
		return fault_set(f, EBADMSG, FAULT_STREAM, "trace context %u is no text", w->id);
	if (!c->table) {
		c->table = calloc(WIRE_CONTEXT_MAX, sizeof(*c->table));
		if (c->table)
			c->memory = WIRE_CONTEXT_MAX * sizeof(*c->table);
	}
	text = c->table ? calloc(1, trace_len + span_len + 2) : NULL;
	if (!text)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for the agent's traces");
	memcpy(text, w->trace_id.p, trace_len);
	if (span_len)
		memcpy(text + trace_len + 1, w->span_id.p, span_len);
	contexts_replace(s, w->id, (struct stream_context){ text, text + trace_len + 1 });
	return 0;
}

bool contexts_find(const struct stream *s, uint32_t id, const struct stream_context **ret,
		   struct fault *f)
{
	bool known = s->contexts.table && id < WIRE_CONTEXT_MAX && s->contexts.table[id].trace_id;

	*ret = id && known ? &s->contexts.table[id] : NULL;
	if (id && !known)
		fault_set(f, EBADMSG, FAULT_STREAM,
			  "an event names trace context %u, which is not defined", id);
	return !id || known;
}

void contexts_forget(struct stream *s)
{
	for (uint32_t id = 0; s->contexts.table && id < WIRE_CONTEXT_MAX; id++)
		free((char *)(uintptr_t)s->contexts.table[id].trace_id);
	free(s->contexts.table);
	s->contexts = (struct stream_contexts){ 0 };
}
