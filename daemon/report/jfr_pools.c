/*
 * The constant pools of a JFR file: threads, classes, methods, stacks and symbols. Events and other
 * pools refer to an entry by its key, which is computed from the profile's own numbers, so that no
 * lookup is needed.
 */
#include "daemon/report/jfr_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "proto/wire.h"
#include "daemon/ground/utf8.h"

#define LINE_MAX_JFR 65535 /* some readers mistake larger ones for another field */

/* The keys that these types have in async-profiler, whose converter knows no others: for it
 * stubs and labels are native, and have their names in brackets. */
enum frame_type { INTERPRETED, COMPILED, INLINED, NATIVE, CPP, KERNEL, C1, FRAME_TYPES };
static const char *const frame_types[FRAME_TYPES] = {
	"Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel", "C1 compiled",
};
static const uint8_t frame_type_of[WIRE_KIND_COUNT] = {
	[WIRE_KIND_UNKNOWN] = NATIVE,
	[WIRE_KIND_JAVA] = COMPILED,
	[WIRE_KIND_INTERPRETED] = INTERPRETED,
	[WIRE_KIND_C1] = C1,
	[WIRE_KIND_C2] = COMPILED,
	[WIRE_KIND_INLINED] = INLINED,
	[WIRE_KIND_NATIVE_METHOD] = NATIVE,
	[WIRE_KIND_NATIVE] = NATIVE,
	[WIRE_KIND_STUB] = NATIVE,
	[WIRE_KIND_KERNEL] = KERNEL,
	[WIRE_KIND_SYNTHETIC] = NATIVE,
	[WIRE_KIND_CLASS] = NATIVE,
};

/* The ranges of symbols' keys: two fixed ones, strings, strings as names of classes, texts of
 * frames. */
enum {
	SYMBOL_EMPTY = 1,
	SYMBOL_NO_ARGUMENTS,
	SYMBOL_NO_STACK,
	SYMBOL_KERNEL,
	SYMBOL_JVM,
	SYMBOL_KINDLING,
	SYMBOL_STRINGS
};
/* Classes for frames that have none, because readers print "class.method". */
enum { CLASS_NONE = 1, CLASS_KERNEL, CLASS_JVM, CLASS_KINDLING, CLASS_STRINGS };

/* ---- methods --------------------------------------------------------------------------------- */

static bool is_method(const struct profile_frame *f)
{
	return wire_kind_is_method(f->kind) && f->class_name;
}

/* The end of the type at @s, as descriptors have them; NULL = there is none. */
static const char *descriptor_type_end(const char *s)
{
	s += strspn(s, "[");
	if (*s == 'L')
		s = s[1] == ';' ? NULL : strchr(s, ';');
	else if (!*s || !strchr("BCDFIJSZ", *s))
		s = NULL;
	return s ? s + 1 : NULL;
}

static bool is_descriptor(const char *s)
{
	if (*s++ != '(')
		return false;
	while (s && *s != ')')
		s = descriptor_type_end(s);
	if (!s)
		return false;
	if (strcmp(s, ")V") == 0)
		return true;
	s = descriptor_type_end(s + 1);
	return s && !*s;
}

/* The string with a method's descriptor; 0 = it has none. A JVM may have sent anything, or have cut
 * a long one, and the JDK's own tools fail at a descriptor that is none. */
static uint32_t descriptor_string(const struct profile *p, const struct profile_frame *f)
{
	return is_descriptor(p->strings[f->signature]) ? f->signature : 0;
}

#define COMPARE(a, b)                              \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

/* Sorts frames by method: there is one for each line and kind. */
static int by_method(const void *a, const void *b, void *frames)
{
	const struct profile_frame *x = (const struct profile_frame *)frames + *(const uint32_t *)a;
	const struct profile_frame *y = (const struct profile_frame *)frames + *(const uint32_t *)b;

	COMPARE(is_method(x), is_method(y));
	COMPARE(x->class_name, y->class_name);
	COMPARE(x->method, y->method);
	COMPARE(x->signature, y->signature);
	if (is_method(x) || x->method)
		return 0;
	COMPARE(x->module, y->module);
	COMPARE(x->offset, y->offset);
	return 0;
}

/* The string with the name of the class on top of a row's stack; 0 = none. */
static uint32_t class_string(const struct jfr *j, const struct profile_row *r)
{
	const struct profile_frame *f;

	if (!r->node)
		return 0;
	f = &j->p->frames[j->p->nodes[r->node].frame];
	return f->kind == WIRE_KIND_CLASS ? f->method : 0;
}

uint32_t jfr_stack_of(const struct jfr *j, const struct profile_row *r)
{
	return class_string(j, r) ? j->p->nodes[r->node].parent : r->node;
}

uint64_t jfr_class_of(const struct jfr *j, const struct profile_row *r)
{
	uint32_t string = class_string(j, r);

	return string ? CLASS_STRINGS + (uint64_t)string : 0;
}

void jfr_number(struct jfr *j)
{
	const struct profile *p = j->p;
	void *frames = (void *)(uintptr_t)p->frames;

	for (uint32_t i = 0; i < p->n_frames; i++)
		j->order[i] = i;
	if (p->n_frames)
		qsort_r(j->order, p->n_frames, sizeof(*j->order), by_method, frames);
	for (uint32_t i = 0; i < p->n_frames; i++) {
		uint32_t frame = j->order[i], before = i ? j->order[i - 1] : 0;
		const struct profile_frame *f = &p->frames[frame];

		j->method[frame] =
			i && by_method(&frame, &before, frames) == 0 ? j->method[before] : frame;
		if (!is_method(f) && f->module)
			j->class_used[f->module] = 1;
		if (!is_method(f))
			continue;
		j->class_used[f->class_name] = j->string_used[f->method] = 1;
		j->string_used[descriptor_string(p, f)] = 1;
	}
	for (uint32_t i = 0; i < p->n_rows; i++) {
		uint32_t string = class_string(j, &p->rows[i]);

		j->leaf_used[jfr_stack_of(j, &p->rows[i])] = 1;
		if (string)
			j->class_used[string] = 1;
	}
}

/* ---- constant pools -------------------------------------------------------------------------- */

static uint64_t symbol_of_class(const struct jfr *j, uint32_t string)
{
	return SYMBOL_STRINGS + j->p->n_strings + (uint64_t)string;
}

static uint64_t symbol_of_frame(const struct jfr *j, uint32_t frame)
{
	return SYMBOL_STRINGS + 2 * (uint64_t)j->p->n_strings + frame;
}

static void begin_pool(struct jfr *j, enum jfr_type type, uint64_t n)
{
	jfr_u64(j->t, type);
	jfr_u64(j->t, n);
}

static uint32_t jfr_pools_count(const uint8_t *used, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += used[i];
	return sum;
}

static void put_enums(struct jfr *j)
{
	static const char *const states[] = { "STATE_DEFAULT", "STATE_RUNNABLE", "STATE_SLEEPING" };

	begin_pool(j, JFR_FRAME_TYPE, FRAME_TYPES);
	for (unsigned i = 0; i < FRAME_TYPES; i++) {
		jfr_u64(j->t, i);
		jfr_string(j->t, frame_types[i]);
	}
	begin_pool(j, JFR_THREAD_STATE, 3);
	for (unsigned i = 0; i < 3; i++) {
		jfr_u64(j->t, i);
		jfr_string(j->t, states[i]);
	}
}

static void jfr_pools_put_threads(struct jfr *j)
{
	const struct profile *p = j->p;
	char name[512];

	begin_pool(j, JFR_THREAD, p->n_threads);
	for (uint32_t i = 0; i < p->n_threads; i++) {
		const struct profile_thread *t = &p->threads[i];
		bool is_virtual = t->tid >= WIRE_VIRTUAL_TID;

		if (p->n_processes > 1)
			snprintf(name, sizeof(name), "%u: %.400s", p->processes[t->process].pid,
				 p->strings[t->name]);
		else
			snprintf(name, sizeof(name), "%.500s", p->strings[t->name]);
		(void)utf8_mend(name);
		jfr_u64(j->t, i + 1);
		jfr_string(j->t, name);
		jfr_u64(j->t, is_virtual ? 0 : t->tid);
		jfr_string(j->t, name);
		jfr_u64(j->t, is_virtual ? t->tid - WIRE_VIRTUAL_TID : 0);
	}
}

static void jfr_pools_put_class(struct jfr *j, uint64_t key, uint64_t symbol)
{
	jfr_u64(j->t, key);
	jfr_u64(j->t, 0); /* no class loader */
	jfr_u64(j->t, symbol);
	jfr_u64(j->t, 0); /* package */
	jfr_u64(j->t, 0); /* modifiers */
}

static void put_classes(struct jfr *j)
{
	begin_pool(j, JFR_CLASS, 4 + (uint64_t)jfr_pools_count(j->class_used, j->p->n_strings));
	jfr_pools_put_class(j, CLASS_NONE, SYMBOL_EMPTY);
	jfr_pools_put_class(j, CLASS_KERNEL, SYMBOL_KERNEL);
	jfr_pools_put_class(j, CLASS_JVM, SYMBOL_JVM);
	jfr_pools_put_class(j, CLASS_KINDLING, SYMBOL_KINDLING);
	for (uint32_t i = 0; i < j->p->n_strings; i++)
		if (j->class_used[i])
			jfr_pools_put_class(j, CLASS_STRINGS + (uint64_t)i, symbol_of_class(j, i));
}

static void put_method(struct jfr *j, uint64_t key, uint64_t class, uint64_t name,
		       uint64_t descriptor)
{
	jfr_u64(j->t, key);
	jfr_u64(j->t, class);
	jfr_u64(j->t, name);
	jfr_u64(j->t, descriptor);
	jfr_u64(j->t, 0); /* modifiers */
	text_bytes(j->t, "\0", 1); /* hidden */
}

static uint64_t class_of_frame(const struct profile_frame *f)
{
	if (f->module)
		return CLASS_STRINGS + (uint64_t)f->module;
	return f->kind == WIRE_KIND_KERNEL	? CLASS_KERNEL
	       : f->kind == WIRE_KIND_STUB	? CLASS_JVM
	       : f->kind == WIRE_KIND_SYNTHETIC ? CLASS_KINDLING
						: CLASS_NONE;
}

/* A method's key is the number of its first frame, + 1. The last one is for samples without a
 * stack. */
static void jfr_pools_put_methods(struct jfr *j)
{
	const struct profile *p = j->p;
	uint64_t n = 1;

	for (uint32_t i = 0; i < p->n_frames; i++)
		n += j->method[i] == i;
	begin_pool(j, JFR_METHOD, n);
	for (uint32_t i = 0; i < p->n_frames; i++) {
		const struct profile_frame *f = &p->frames[i];
		uint64_t descriptor = descriptor_string(p, f);

		if (j->method[i] != i)
			continue;
		if (is_method(f))
			put_method(j, i + 1ull, CLASS_STRINGS + (uint64_t)f->class_name,
				   SYMBOL_STRINGS + (uint64_t)f->method,
				   descriptor ? SYMBOL_STRINGS + descriptor
					      : (uint64_t)SYMBOL_NO_ARGUMENTS);
		else
			put_method(j, i + 1ull, class_of_frame(f), symbol_of_frame(j, i),
				   SYMBOL_NO_ARGUMENTS);
	}
	put_method(j, p->n_frames + 1ull, CLASS_KINDLING, SYMBOL_NO_STACK, SYMBOL_NO_ARGUMENTS);
}

static void jfr_pools_put_frame(struct jfr *j, uint64_t method, int32_t line, enum frame_type type)
{
	jfr_u64(j->t, method);
	jfr_u64(j->t, line < 0 ? 0 : line > LINE_MAX_JFR ? LINE_MAX_JFR : (uint64_t)line);
	jfr_u64(j->t, 0); /* bytecode index */
	jfr_u64(j->t, type);
}

/* A stack's key is the number of its leaf, + 1, so that the empty stack has one, too. */
static void jfr_pools_put_stacks(struct jfr *j)
{
	const struct profile *p = j->p;

	begin_pool(j, JFR_STACK_TRACE, jfr_pools_count(j->leaf_used, p->n_nodes));
	for (uint32_t leaf = 0; leaf < p->n_nodes; leaf++) {
		uint32_t depth = 0;

		if (!j->leaf_used[leaf])
			continue;
		for (uint32_t n = leaf; n; n = p->nodes[n].parent)
			depth++;
		jfr_u64(j->t, leaf + 1ull);
		text_bytes(j->t, "\0", 1); /* not truncated */
		jfr_u64(j->t, depth ? depth : 1);
		for (uint32_t n = leaf; n; n = p->nodes[n].parent) {
			const struct profile_frame *f = &p->frames[p->nodes[n].frame];

			jfr_pools_put_frame(j, j->method[p->nodes[n].frame] + 1ull, f->line,
					    frame_type_of[f->kind < WIRE_KIND_COUNT ? f->kind : 0]);
		}
		if (!depth)
			jfr_pools_put_frame(j, p->n_frames + 1ull, 0, NATIVE);
	}
}

static void put_symbol(struct jfr *j, uint64_t key, const char *text)
{
	jfr_u64(j->t, key);
	jfr_string(j->t, text);
}

static void put_class_symbol(struct jfr *j, uint32_t string)
{
	const char *text = j->p->strings[string], *file = strrchr(text, '/');
	char name[2048];

	/* names of classes have no slash: this is the path of a library */
	if (file) {
		put_symbol(j, symbol_of_class(j, string), file + 1);
		return;
	}
	snprintf(name, sizeof(name), "%s", text);
	for (char *c = name; *c; c++)
		if (*c == '.')
			*c = '/';
	(void)utf8_mend(name);
	/* readers take the "[v" of "[vdso]" for an array type, and their parsers fail */
	if (name[0] == '[')
		name[strcspn(name, "]")] = '\0';
	put_symbol(j, symbol_of_class(j, string), name + strspn(name, "["));
}

/* "Parker::park(bool, long)" becomes "Parker::park": readers append parentheses to all methods. */
static void cut_arguments(char *name)
{
	size_t len = strlen(name), at;
	int depth = 0;

	if (len > 6 && strcmp(name + len - 6, " const") == 0)
		len -= 6;
	for (at = len; at-- > 1;) {
		depth += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
		if (depth == 0)
			break;
	}
	if (at > 0 && at < len && name[at] == '(')
		name[at] = '\0';
}

static void jfr_pools_put_symbols(struct jfr *j)
{
	const struct profile *p = j->p;
	uint64_t n = 6 + (uint64_t)jfr_pools_count(j->string_used, p->n_strings) +
		     jfr_pools_count(j->class_used, p->n_strings);
	char text[2048];

	for (uint32_t i = 0; i < p->n_frames; i++)
		n += j->method[i] == i && !is_method(&p->frames[i]);
	begin_pool(j, JFR_SYMBOL, n);
	put_symbol(j, SYMBOL_EMPTY, "");
	put_symbol(j, SYMBOL_NO_ARGUMENTS, "()V");
	put_symbol(j, SYMBOL_NO_STACK, "[no stack]");
	put_symbol(j, SYMBOL_KERNEL, "kernel");
	put_symbol(j, SYMBOL_JVM, "jvm");
	put_symbol(j, SYMBOL_KINDLING, "kindling");
	for (uint32_t i = 0; i < p->n_strings; i++) {
		if (j->string_used[i])
			put_symbol(j, SYMBOL_STRINGS + (uint64_t)i, p->strings[i]);
		if (j->class_used[i])
			put_class_symbol(j, i);
	}
	for (uint32_t i = 0; i < p->n_frames; i++) {
		if (j->method[i] != i || is_method(&p->frames[i]))
			continue;
		report_frame_name(p, &p->frames[i], text, sizeof(text));
		cut_arguments(text);
		put_symbol(j, symbol_of_frame(j, i), text);
	}
}

void jfr_put_pools(struct jfr *j)
{
	bool stacks = jfr_pools_count(j->leaf_used, j->p->n_nodes) > 0;
	size_t at = jfr_begin(j->t, JFR_POOLS);

	jfr_u64(j->t, JFR_START_TICKS);
	jfr_u64(j->t, 0); /* duration */
	jfr_u64(j->t, 0); /* no earlier pool */
	text_bytes(j->t, "\1", 1);
	/* the JDK's reader rejects empty pools */
	jfr_u64(j->t, 5 + (j->p->n_threads ? 1 : 0) + (stacks ? 1 : 0));
	put_enums(j);
	if (j->p->n_threads)
		jfr_pools_put_threads(j);
	put_classes(j);
	jfr_pools_put_methods(j);
	if (stacks)
		jfr_pools_put_stacks(j);
	jfr_pools_put_symbols(j);
	jfr_end(j->t, at);
}
