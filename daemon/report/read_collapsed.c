/*
 * One line for each stack: the frames, root first, and a number. A first frame "[NAME pid=4711]" is
 * the JVM, "[NAME tid=8]" the thread, as kindling and async-profiler write them. The file has no
 * numbers of samples, so these are 0, unless the caller knows that the weights count samples.
 */
#include "daemon/report/readers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/utf8.h"

#define LINE_BYTES_MAX (4ul << 20)

struct collapsed {
	struct report_reading *r;
	struct profile *p;
	const char *place; /* for errors: "line 12" */
	uint32_t process; /* of lines that name no JVM; UINT32_MAX = not made yet */
	bool has_thread; /* this line has named its thread */
};

/* Splits "[NAME WORD=4711]" into NAME and the number; false: the frame is not of this form. */
static bool collapsed_owner(char *frame, const char *word, uint32_t *ret)
{
	size_t len = strlen(frame);
	char *at, *end;
	unsigned long n;

	if (len < 3 || frame[0] != '[' || frame[len - 1] != ']')
		return false;
	for (at = frame + len; at > frame && *at != ' '; at--)
		;
	if (at == frame || strncmp(at + 1, word, strlen(word)) != 0)
		return false;
	n = strtoul(at + 1 + strlen(word), &end, 10);
	if (end == at + 1 + strlen(word) || strcmp(end, "]") != 0 || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	*at = '\0';
	return true;
}

static uint32_t collapsed_process(struct collapsed *c, const char *name, uint32_t pid)
{
	struct profile_process q = { .pid = pid, .name = profile_string(c->p, name) };

	return profile_process(c->p, &q);
}

/* Is the frame the stack's JVM or thread? Then it is stored in @t. */
static bool collapsed_takes(struct collapsed *c, char *frame, struct profile_thread *t)
{
	uint32_t n;

	if (t->process == UINT32_MAX && collapsed_owner(frame, "pid=", &n)) {
		t->process = collapsed_process(c, frame + 1, n);
		return true;
	}
	if (c->has_thread)
		return false;
	if (strcmp(frame, "[]") == 0) { /* stands for all unnamed virtual threads */
		t->tid = WIRE_VIRTUAL_TID;
		frame[1] = '\0';
	} else if (collapsed_owner(frame, "tid=", &n) && n < WIRE_VIRTUAL_TID) {
		t->tid = n;
	} else if (collapsed_owner(frame, "#", &n) && n < WIRE_VIRTUAL_TID) {
		char *virtual = strstr(frame, " virtual");

		if (virtual)
			*virtual = '\0';
		t->tid = WIRE_VIRTUAL_TID + n;
	} else {
		return false;
	}
	t->name = profile_string(c->p, frame + 1);
	c->has_thread = true;
	return true;
}

static uint32_t collapsed_stack(struct collapsed *c, char *stack, struct profile_thread *t)
{
	char *rest = stack, *name;
	uint32_t node = 0;

	c->has_thread = false;
	while ((name = strsep(&rest, ";"))) {
		struct profile_frame f;

		if (node == 0 && collapsed_takes(c, name, t))
			continue;
		if (node == 0 && !rest && strcmp(name, "[no stack]") == 0)
			break;
		f = read_frame_name(c->p, name, -1);
		node = profile_node(c->p, node, profile_intern_frame(c->p, &f));
	}
	return node;
}

/* Reads a line such as "a;b 12". */
static int collapsed_line(struct collapsed *c, char *line)
{
	uint64_t interval = c->r->interval, n;
	struct profile_thread t = { .process = UINT32_MAX };
	struct profile_row row = { .event = (uint8_t)(c->r->event < 0 ? WIRE_EVENT_CPU
								      : c->r->event) };
	char *space = strrchr(line, ' '), *end;

	if (!space || space == line)
		return read_wrong(c->r, "%s: no number after the stack", c->place);
	errno = 0;
	n = strtoull(space + 1, &end, 10);
	if (errno || end == space + 1 || *end || space[1] == '-')
		return read_wrong(c->r, "%s: not a whole number after the stack: \"%.40s\"",
				  c->place, space + 1);
	*space = '\0';
	row.samples = interval ? n : 0;
	if (__builtin_mul_overflow(n, interval ? interval : 1, &row.weight))
		return read_wrong(c->r, "%s: a number that is too large", c->place);
	row.node = collapsed_stack(c, line, &t);
	if (t.process == UINT32_MAX && c->process == UINT32_MAX)
		c->process = collapsed_process(c, "collapsed stacks", 0);
	if (t.process == UINT32_MAX)
		t.process = c->process;
	row.thread = profile_thread(c->p, &t);
	profile_add_row(c->p, &row);
	return 0;
}

int read_collapsed(const char *bytes, size_t len, struct report_reading *r, struct profile *p)
{
	CLEANUP(freep) char *line = malloc(LINE_BYTES_MAX + 1);
	struct collapsed c = { .r = r, .p = p, .process = UINT32_MAX };
	const char *end = bytes + len, *next;
	unsigned long number = 0;
	char place[40];
	int e = line ? 0 : -ENOMEM;

	c.place = place;
	for (; e == 0 && bytes < end; bytes = next) {
		const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t n = (size_t)((stop ? stop : end) - bytes);

		next = stop ? stop + 1 : end;
		snprintf(place, sizeof(place), "line %lu", ++number);
		if (n && bytes[n - 1] == '\r')
			n--;
		if (n == 0)
			continue;
		if (n > LINE_BYTES_MAX || memchr(bytes, '\0', n))
			return read_wrong(r, "%s: longer than 4 MiB, or not text", place);
		memcpy(line, bytes, n);
		line[n] = '\0';
		(void)utf8_mend(line);
		e = collapsed_line(&c, line);
	}
	profile_book_rows(p);
	return e;
}
