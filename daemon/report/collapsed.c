/* One line for each stack: the frames, root first (reversed: leaf first), separated by ';', and
 * the weight, in ns or for allocations in bytes. Frames whose names print the same, although
 * their lines or offsets differ, are merged. If there are several JVMs, the first frame is the
 * JVM. */
#include "daemon/report/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4096

struct line {
	char *stack;
	uint64_t weight;
};

static void collapsed_put_name(struct text_out *t, const char *name)
{
	for (; *name; name++)
		text_bytes(t,
			   *name == ';'				   ? ":"
			   : (uint8_t)*name < ' ' || *name == 0x7f ? "?"
								   : name,
			   1);
}

const char *thread_number(const struct profile_thread *t, char buf[THREAD_NUMBER_MAX])
{
	buf[0] = '\0';
	if (t->tid < WIRE_VIRTUAL_TID)
		snprintf(buf, THREAD_NUMBER_MAX, " tid=%u", t->tid);
	else if (t->tid > WIRE_VIRTUAL_TID)
		snprintf(buf, THREAD_NUMBER_MAX, " virtual #%u", t->tid - WIRE_VIRTUAL_TID);
	return buf;
}

/* Writes the stack's JVM and thread as its first frames, if these are kept apart. */
static void collapsed_put_owner(struct text_out *t, const struct profile *p,
				const struct profile_row *r, const struct report_options *o,
				bool several)
{
	const struct profile_thread *thread = &p->threads[r->thread];
	const struct profile_process *q = &p->processes[thread->process];
	char name[1024], number[THREAD_NUMBER_MAX];

	if (several) {
		snprintf(name, sizeof(name), "[%s pid=%u]", p->strings[q->name], q->pid);
		collapsed_put_name(t, name);
	}
	if (o->threads) {
		snprintf(name, sizeof(name), "[%s%s]", p->strings[thread->name],
			 thread_number(thread, number));
		if (t->len)
			text_put(t, ";");
		collapsed_put_name(t, name);
	}
}

static char *stack_text(const struct profile *p, const struct profile_row *r,
			const struct report_options *o, bool several)
{
	uint32_t chain[DEPTH_MAX], n = 0;
	struct text_out t = { 0 };
	char name[1024];

	for (uint32_t node = r->node; node && n < DEPTH_MAX; node = p->nodes[node].parent)
		chain[n++] = node;
	collapsed_put_owner(&t, p, r, o, several);
	if (n == 0)
		text_put(&t, t.len ? ";[no stack]" : "[no stack]");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = chain[o->reverse ? i : n - 1 - i];
		const struct profile_frame *f = &p->frames[p->nodes[node].frame];

		report_frame_name(p, f, name, sizeof(name));
		if (t.len)
			text_put(&t, ";");
		collapsed_put_name(&t, name);
		if (o->annotate)
			text_put(&t, report_kind_mark(f->kind));
	}
	if (t.failed) {
		free(t.p);
		return NULL;
	}
	return t.p;
}

bool report_is_of_several(const struct profile *p, const struct report_options *o)
{
	if (o->merge)
		return false;
	for (uint32_t i = 1; i < p->n_rows; i++)
		if (p->threads[p->rows[i].thread].process != p->threads[p->rows[0].thread].process)
			return true;
	return false;
}

static int collapsed_by_stack(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->stack, ((const struct line *)b)->stack);
}

void write_collapsed(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	struct line *lines = calloc(p->n_rows + 1, sizeof(*lines));
	bool several = report_is_of_several(p, o);
	uint32_t n = 0;

	if (!lines) {
		t->failed = true;
		return;
	}
	for (uint32_t i = 0; i < p->n_rows; i++) {
		lines[n].stack = stack_text(p, &p->rows[i], o, several);
		lines[n].weight = p->rows[i].weight;
		if (lines[n].stack)
			n++;
		else
			t->failed = true;
	}
	qsort(lines, n, sizeof(*lines), collapsed_by_stack);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t sum = lines[i].weight;

		while (i + 1 < n && strcmp(lines[i].stack, lines[i + 1].stack) == 0) {
			free(lines[i].stack);
			sum += lines[++i].weight;
		}
		text_put(t, lines[i].stack);
		text_printf(t, " %llu\n", (unsigned long long)sum);
		free(lines[i].stack);
	}
	free(lines);
}
