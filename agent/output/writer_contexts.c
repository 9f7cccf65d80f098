/*
 * Ids for trace contexts. Their number is limited, so that neither side grows: the oldest id gets
 * the new meaning. Records in the pending frames still mean the old one, so those frames are
 * written first.
 */
#include "agent/output/writer_priv.h"

#include <string.h>
#include <sys/mman.h>

#define CONTEXT_WAYS 8u /* ids that one text may get */
#define CONTEXT_SETS (WIRE_CONTEXT_MAX / CONTEXT_WAYS)

struct writer_context {
	uint64_t hash; /* 0 = the id has no meaning */
	uint32_t generation; /* when the id got its meaning */
	uint32_t batch; /* the batch of frames in which it was last used */
};

static struct {
	struct writer_context *of; /* by id; mapped when the first context comes */
	uint32_t generation;
} writer_contexts;

#define CONTEXTS_BYTES (WIRE_CONTEXT_MAX * sizeof(struct writer_context))

uint64_t writer_contexts_bytes(void)
{
	return writer_contexts.of ? CONTEXTS_BYTES : 0;
}

void writer_contexts_forget(void)
{
	if (writer_contexts.of)
		memset(writer_contexts.of, 0, CONTEXTS_BYTES);
}

void writer_contexts_free(void)
{
	if (writer_contexts.of)
		munmap(writer_contexts.of, CONTEXTS_BYTES);
	writer_contexts.of = NULL;
}

uint32_t writer_context_generation(void)
{
	return writer_contexts.generation;
}

void writer_context_used(uint32_t id)
{
	if (id)
		writer_contexts.of[id].batch = writer.batch;
}

bool writer_context_is_current(uint32_t id, uint32_t generation)
{
	return id && writer_contexts.of && writer_contexts.of[id].hash &&
	       (int32_t)(generation - writer_contexts.of[id].generation) >= 0;
}

static bool writer_contexts_map(void)
{
	void *p;

	if (writer_contexts.of)
		return true;
	p = mmap(NULL, CONTEXTS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	writer_contexts.of = p;
	return true;
}

/* The id that means @hash, or the one that should get this meaning. */
static uint32_t writer_context_slot(uint64_t hash)
{
	uint32_t first = (uint32_t)(hash % CONTEXT_SETS) * CONTEXT_WAYS, oldest = 0;

	for (uint32_t id = first ? first : 1; id < first + CONTEXT_WAYS; id++) {
		const struct writer_context *c = &writer_contexts.of[id];

		if (c->hash == hash)
			return id;
		if (!oldest || !c->hash ||
		    (writer_contexts.of[oldest].hash &&
		     (int32_t)(c->generation - writer_contexts.of[oldest].generation) < 0))
			oldest = id;
	}
	return oldest;
}

static bool writer_context_define(uint32_t id, const char *text, uint32_t bytes)
{
	uint32_t trace_len = (uint32_t)strlen(text);
	struct wire_context record = {
		.id = id,
		.trace_id = { text, trace_len },
		.span_id = { text + trace_len + 1, bytes - trace_len - 2 },
	};

	if (PUT(PENDING_CONTEXT, wire_put_context, &record))
		return true;
	writer.torn = true;
	return false;
}

/* Are these two strings of visible ASCII, each NUL-terminated? The reader accepts nothing else. */
static bool writer_context_is_text(const char *text, uint32_t bytes)
{
	uint32_t ends = 0, last = 0;

	if (bytes < 3 || bytes > RING_CONTEXT_BYTES || text[bytes - 1])
		return false;
	for (uint32_t i = 0; i < bytes; i++) {
		if (text[i] && (text[i] < 0x21 || text[i] > 0x7e))
			return false;
		if (text[i])
			continue;
		if (i - last > WIRE_TRACE_MAX)
			return false;
		last = i + 1;
		ends++;
	}
	return ends == 2 && text[0];
}

uint32_t writer_context_id(const char *text, uint32_t bytes)
{
	uint64_t hash = dict_hash(text, bytes) | 1;
	struct writer_context *c;
	uint32_t id;

	if (!writer_context_is_text(text, bytes) || !writer_contexts_map())
		return 0;
	id = writer_context_slot(hash);
	c = &writer_contexts.of[id];
	if (c->hash == hash)
		return id;
	if (c->hash && c->batch == writer.batch && (writer_flush() != WRITER_OK || writer.torn))
		return 0;
	*c = (struct writer_context){ hash, ++writer_contexts.generation, c->batch };
	if (writer_context_define(id, text, bytes))
		return id;
	c->hash = 0;
	return 0;
}
