/* The names of an agent's threads, also of ended ones while there is room. */
#include "daemon/stream/stream_priv.h"

#include <errno.h>
#include <string.h>

#define THREADS_BYTES_MAX (8u << 20) /* of the names of one stream's threads */

static struct stream_thread *thread_slot(struct stream_thread *table, uint32_t size, uint32_t seed,
					 uint32_t tid)
{
	uint64_t h = ((uint64_t)tid ^ seed) * 0x9e3779b97f4a7c15ull;
	uint32_t i =
		(uint32_t)((h ^ (uint64_t)seed << 32) * 0xff51afd7ed558ccdull >> 32) & (size - 1);

	while (table[i].name && table[i].tid != tid)
		i = (i + 1) & (size - 1);
	return &table[i];
}

/* Moves the names to a new table of @size slots; without @with_ended those of ended threads are
 * freed. */
static int rehash_threads(struct stream *s, uint32_t size, bool with_ended)
{
	struct stream_thread *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->threads.size; i++) {
		struct stream_thread *t = &s->threads.table[i];

		if (!t->name)
			continue;
		if (!t->ended || with_ended) {
			*thread_slot(table, size, s->threads.seed, t->tid) = *t;
			continue;
		}
		s->threads.memory -= strlen(t->name) + STREAM_BLOCK_BYTES;
		s->threads.n--;
		free(t->name);
	}
	free(s->threads.table);
	s->threads.table = table;
	s->threads.size = size;
	return 0;
}

static int grow_threads(struct stream *s)
{
	return rehash_threads(s, s->threads.size ? 2 * s->threads.size : 256, true);
}

void thread_names_forget(struct stream *s)
{
	for (uint32_t i = 0; i < s->threads.size; i++)
		free(s->threads.table[i].name);
	free(s->threads.table);
	s->threads.table = NULL;
	s->threads.size = s->threads.n = 0;
	s->threads.memory = 0;
}

/* Frees the names of ended threads at the limit. If those of live threads alone take more than
 * half of it, all are freed: a live thread's name comes again with its next change; until then
 * it is shown as a number. */
static void bound_threads(struct stream *s)
{
	if (s->threads.memory + s->threads.size * sizeof(*s->threads.table) <= THREADS_BYTES_MAX)
		return;
	if (rehash_threads(s, s->threads.size, false) < 0 ||
	    s->threads.memory + s->threads.size * sizeof(*s->threads.table) > THREADS_BYTES_MAX / 2)
		thread_names_forget(s);
}

/* The agent reports a thread's end without its name. */
static void end_thread(struct stream *s, const struct wire_thread *w)
{
	struct stream_thread *t = s->threads.size ? thread_slot(s->threads.table, s->threads.size,
								s->threads.seed, w->tid)
						  : NULL;
	const char *name = "";

	if (t && t->name) {
		t->ended = true;
		name = t->name;
	}
	if (s->ops.on_thread)
		s->ops.on_thread(s->userdata, w, name);
}

/* After two thousand million names a number may be that of an older one. */
static uint32_t next_number(void)
{
	static uint32_t last;

	last = (last + 1) & INT32_MAX;
	return last ? last : ++last;
}

int thread_names_add(struct stream *s, const struct wire_thread *w, struct fault *f)
{
	struct stream_thread *t;
	size_t len;
	char *name;

	if (w->flags & WIRE_THREAD_ENDED) {
		end_thread(s, w);
		return 0;
	}
	bound_threads(s);
	if (2 * (s->threads.n + 1) > s->threads.size && grow_threads(s) < 0)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for thread names");
	name = dictionary_clean_copy(w->name, &len);
	if (!name)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for thread names");
	t = thread_slot(s->threads.table, s->threads.size, s->threads.seed, w->tid);
	if (t->name)
		s->threads.memory -= strlen(t->name) + STREAM_BLOCK_BYTES;
	else
		s->threads.n++;
	s->threads.memory += len + STREAM_BLOCK_BYTES;
	free(t->name);
	t->tid = w->tid;
	t->number = next_number();
	t->ended = false;
	t->name = name;
	if (s->ops.on_thread)
		s->ops.on_thread(s->userdata, w, name);
	return 0;
}

const char *thread_names_find(const struct stream *s, uint32_t tid, uint32_t *ret_number)
{
	const struct stream_thread *t = NULL;

	if (s->threads.size)
		t = thread_slot(s->threads.table, s->threads.size, s->threads.seed, tid);
	*ret_number = t && t->name ? t->number : 0;
	return t && t->name ? t->name : "";
}

const char *stream_thread_name(const struct stream *s, uint32_t tid)
{
	uint32_t number;

	return thread_names_find(s, tid, &number);
}
