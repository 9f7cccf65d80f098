/*
 * Reads slices that profile_encode_slice() made. An entry keeps the number that it has in the
 * window, so the tables have holes; nothing that is read refers to one.
 */
#include "daemon/profile/encode_priv.h"

#include <errno.h>
#include <string.h>

struct profile_slices {
	struct profile *view; /* the entries so far, and the rows of the last slice */
	struct profile *whole; /* the last one, if it was made by profile_encode() */
	struct profile_reported known;
	char **texts; /* the strings, a block for each slice */
	size_t n_texts;
};

int profile_slices_new(struct profile_slices **ret)
{
	CLEANUP(profile_slices_freep) struct profile_slices *s = calloc(1, sizeof(*s));
	int r = s ? profile_new(&s->view) : -ENOMEM;

	if (r < 0)
		return r;
	free((void *)(uintptr_t)s->view->strings[0]);
	STRINGS(s->view)[0] = "";
	s->view->index->borrows = true;
	*ret = TAKE_PTR(s);
	return 0;
}

struct profile_slices *profile_slices_free(struct profile_slices *s)
{
	if (!s)
		return NULL;
	if (s->view)
		STRINGS(s->view)[0] = NULL; /* which is freed with the view */
	profile_free(s->view);
	profile_free(s->whole);
	profile_reported_free(&s->known);
	for (size_t i = 0; i < s->n_texts; i++)
		free(s->texts[i]);
	free(s->texts);
	free(s);
	return NULL;
}

/* Makes room for entry @i of a table of *n entries; new ones are zeroed. */
static bool slices_room(void **table, uint32_t *cap, uint32_t *n, uint32_t i, size_t size)
{
	uint32_t want = i + i / 2 + 64;
	void *p;

	if (i >= *cap) {
		p = realloc(*table, want * size);
		if (!p)
			return false;
		memset((char *)p + *cap * size, 0, (want - *cap) * size);
		*table = p;
		*cap = want;
	}
	if (i >= *n)
		*n = i + 1;
	return true;
}

#define SLICES_ROOM(p, table, i)                                                                  \
	slices_room((void **)(uintptr_t) & (p)->table, &(p)->index->cap_##table, &(p)->n_##table, \
		    i, sizeof(*(p)->table))

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_known(const struct profile_bits *b, uint32_t i)
{
	return profile_bits_has(b, i);
}

static bool is_string(const struct profile_slices *s, uint32_t i)
{
	return !i || is_known(&s->known.strings, i);
}

/* Makes room for string @i; what lies between the last one and it is "". */
static bool room_for_string(struct profile *p, uint32_t i)
{
	uint32_t from = p->n_strings;

	if (!SLICES_ROOM(p, strings, i))
		return false;
	for (uint32_t k = from; k < p->n_strings; k++)
		STRINGS(p)[k] = "";
	return true;
}

/* A block for all strings of a slice. */
static char *slices_text(struct profile_slices *s, size_t bytes)
{
	char **texts = realloc(s->texts, (s->n_texts + 1) * sizeof(*texts));
	char *text = texts ? malloc(bytes + 1) : NULL;

	if (texts)
		s->texts = texts;
	if (text)
		s->texts[s->n_texts++] = text;
	return text;
}

static int slices_strings(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = profile_decode_count(in, PROFILE_STRINGS_MAX, 3);
	char *text = slices_text(s, (size_t)(in->end - in->p));

	if (!text)
		return -ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = profile_decode_below(in, PROFILE_STRINGS_MAX);
		uint64_t len = profile_decode_length(in);

		if (in->bad || !i || memchr(in->p, 0, len))
			return -EBADMSG;
		if (!room_for_string(s->view, i) || !profile_bits_set(&s->known.strings, i))
			return -ENOMEM;
		memcpy(text, in->p, len); /* a number in front of each leaves room for its NUL */
		text[len] = '\0';
		STRINGS(s->view)[i] = text;
		text += len + 1;
		in->p += len;
	}
	return in->bad ? -EBADMSG : 0;
}

static int slices_frames(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 9);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = profile_decode_below(in, PROFILE_NODES_MAX);
		struct profile_frame f;

		profile_decode_frame(in, s->view, &f);
		if (in->bad || !is_string(s, f.class_name) || !is_string(s, f.method) ||
		    !is_string(s, f.signature) || !is_string(s, f.file) || !is_string(s, f.module))
			return -EBADMSG;
		if (!SLICES_ROOM(s->view, frames, i) || !profile_bits_set(&s->known.frames, i))
			return -ENOMEM;
		FRAMES(s->view)[i] = f;
	}
	return in->bad ? -EBADMSG : 0;
}

/* All processes of the window are in each slice. */
static int slices_processes(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 14);

	for (uint32_t i = 0; i < n; i++) {
		struct profile_process q;

		profile_decode_process(in, s->view, &q);
		if (in->bad || !is_string(s, q.name) || !is_string(s, q.container_id) ||
		    !is_string(s, q.container) || !is_string(s, q.pod) || !is_string(s, q.jdk) ||
		    !is_string(s, q.note) || !is_string(s, q.labels))
			return -EBADMSG;
		if (!SLICES_ROOM(s->view, processes, i))
			return -ENOMEM;
		PROCESSES(s->view)[i] = q;
	}
	/* fewer than before: the clock was set back, and another window has the same time */
	for (uint32_t i = n; i < s->view->n_processes; i++)
		PROCESSES(s->view)[i] = (struct profile_process){ 0 };
	return in->bad ? -EBADMSG : 0;
}

static int slices_threads(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 4);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = profile_decode_below(in, PROFILE_NODES_MAX);
		struct profile_thread t;

		profile_decode_thread(in, s->view, &t);
		if (in->bad || !is_string(s, t.name))
			return -EBADMSG;
		if (!SLICES_ROOM(s->view, threads, i) || !profile_bits_set(&s->known.threads, i))
			return -ENOMEM;
		THREADS(s->view)[i] = t;
	}
	return in->bad ? -EBADMSG : 0;
}

static int slices_nodes(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 3);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = profile_decode_below(in, PROFILE_NODES_MAX);
		uint32_t parent = profile_decode_below(in, i);
		uint32_t frame = profile_decode_below(in, s->view->n_frames);

		if (in->bad || (parent && !is_known(&s->known.nodes, parent)) ||
		    !is_known(&s->known.frames, frame))
			return -EBADMSG;
		if (!SLICES_ROOM(s->view, nodes, i) || !profile_bits_set(&s->known.nodes, i))
			return -ENOMEM;
		NODES(s->view)[i] = (struct profile_node){ parent, frame };
	}
	return in->bad ? -EBADMSG : 0;
}

static int slices_spans(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = in->version < PROFILE_VERSION_IDS
			     ? 0
			     : profile_decode_count(in, PROFILE_SPANS_MAX, 3);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = profile_decode_below(in, PROFILE_SPANS_MAX);
		struct profile_span span = { profile_decode_below(in, s->view->n_strings),
					     profile_decode_below(in, s->view->n_strings) };

		if (in->bad || !is_string(s, span.trace_id) || !is_string(s, span.span_id))
			return -EBADMSG;
		if (!SLICES_ROOM(s->view, spans, i) || !profile_bits_set(&s->known.spans, i))
			return -ENOMEM;
		SPANS(s->view)[i] = span;
	}
	return in->bad ? -EBADMSG : 0;
}

/* ---- a slice --------------------------------------------------------------------------------- */

static int slices_rows(struct profile_slices *s, struct profile_in *in)
{
	uint32_t n = profile_decode_count(in, PROFILE_ROWS_MAX, 5);

	s->view->n_rows = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_row r;

		profile_decode_row(in, s->view, &r);
		if (in->bad || !is_known(&s->known.threads, r.thread) ||
		    (r.node && !is_known(&s->known.nodes, r.node)) ||
		    (r.span && !is_known(&s->known.spans, r.span - 1)))
			return -EBADMSG;
		if (!SLICES_ROOM(s->view, rows, i))
			return -ENOMEM;
		ROWS(s->view)[i] = r;
	}
	return in->bad || in->p != in->end ? -EBADMSG : 0;
}

static int slices_whole(struct profile_slices *s, const uint8_t *buf, size_t len,
			struct profile **ret)
{
	int r;

	s->whole = profile_free(s->whole);
	r = profile_decode(buf, len, &s->whole);
	*ret = s->whole;
	return r;
}

int profile_slices_read(struct profile_slices *s, const uint8_t *buf, size_t len,
			struct profile **ret)
{
	struct profile_in in = { .p = buf, .end = buf + len };
	int r;

	if (len < 5 || memcmp(buf, PROFILE_MAGIC_SLICE, 4) != 0)
		return slices_whole(s, buf, len, ret);
	in.p += 4;
	memset(&s->view->accounts, 0, sizeof(s->view->accounts));
	memset(s->view->interval, 0, sizeof(s->view->interval));
	r = profile_decode_head(&in, s->view);
	if (r == 0)
		r = slices_strings(s, &in);
	if (r == 0)
		r = slices_frames(s, &in);
	if (r == 0)
		r = slices_processes(s, &in);
	if (r == 0)
		r = slices_threads(s, &in);
	if (r == 0)
		r = slices_nodes(s, &in);
	if (r == 0)
		r = slices_spans(s, &in);
	if (r == 0)
		r = slices_rows(s, &in);
	if (r == 0)
		profile_adopt_full(s->view);
	*ret = s->view;
	return r;
}
