/* See roots.h. */
#include "agent/output/roots.h"

#include <stdbool.h>
#include <string.h>
#include "agent/base/dict.h"
#include "proto/wire.h"

#define ROOTS	     64u /* names that are kept; power of two */
#define DEPTH_OF_ONE 2u /* frames that are used while there is only one sample */
#define NAME_SIZE    WALK_NAME_BYTES

/* One frame of the common stack. */
struct root_frame {
	uint64_t where;
	uint8_t kind;
	uint32_t have; /* samples with the same previous frames that have this frame */
	uint32_t other; /* such samples that have another frame here */
};

struct root {
	uint64_t name; /* its hash */
	uint32_t epoch; /* the writer's epoch; 0 = the entry is empty */
	uint32_t n;
	struct root_frame frames[ROOTS_DEPTH]; /* the root first */
};

static struct root roots[ROOTS];

/* Leaves out digits: "pool-1-thread-17" and "pool-2-thread-3" have one hash. */
static uint64_t roots_hash_of(const char *name)
{
	char text[NAME_SIZE];
	uint32_t n = 0;

	for (uint32_t i = 0; i < NAME_SIZE && name[i]; i++)
		if (name[i] < '0' || name[i] > '9')
			text[n++] = name[i];
	return dict_hash(text, n);
}

static struct root *roots_root_of(uint64_t hash)
{
	return &roots[hash & (ROOTS - 1)];
}

/* The methods at the root. Native frames below them are the same in every thread. */
static void roots_methods_of(const struct walk_frame *frames, uint32_t n, struct root *ret)
{
	while (n && !wire_kind_is_method(frames[n - 1].kind))
		n--;
	while (n && ret->n < ROOTS_DEPTH && wire_kind_is_method(frames[n - 1].kind)) {
		n--;
		ret->frames[ret->n++] = (struct root_frame){
			.where = frames[n].where,
			.kind = frames[n].kind,
			.have = 1,
		};
	}
}

/* Replaces the frames of @r from @i on by those of @now. */
static void roots_take_over(struct root *r, const struct root *now, uint32_t i)
{
	memcpy(&r->frames[i], &now->frames[i], (ROOTS_DEPTH - i) * sizeof(r->frames[0]));
	r->n = now->n;
}

void roots_seen(uint32_t epoch, const char *name, const struct walk_frame *frames, uint32_t n)
{
	struct root now = { .name = roots_hash_of(name), .epoch = epoch };
	struct root *r = roots_root_of(now.name);

	roots_methods_of(frames, n, &now);
	/* a stack without methods, when a thread begins or ends, does not show what the thread
	 * runs */
	if (!now.n || !epoch)
		return;
	if (r->epoch != epoch || r->name != now.name) {
		*r = now;
		return;
	}
	for (uint32_t i = 0; i < now.n; i++) {
		struct root_frame *f = &r->frames[i];

		if (i >= r->n || (f->where != now.frames[i].where && ++f->other > f->have)) {
			roots_take_over(r, &now, i);
			return;
		}
		if (f->where != now.frames[i].where)
			return;
		f->have++;
	}
}

static bool roots_is_common(const struct root_frame *f)
{
	return f->have >= 9 * f->other;
}

uint32_t roots_of(uint32_t epoch, const char *name, struct walk_frame *ret)
{
	uint64_t hash = roots_hash_of(name);
	const struct root *r = roots_root_of(hash);
	uint32_t n = 0, most;

	if (!epoch || r->epoch != epoch || r->name != hash)
		return 0;
	most = r->frames[0].have < 2 ? DEPTH_OF_ONE : ROOTS_DEPTH;
	while (n < r->n && n < most && roots_is_common(&r->frames[n]))
		n++;
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (struct walk_frame){
			.where = r->frames[n - 1 - i].where,
			.bci = -1,
			.kind = r->frames[n - 1 - i].kind,
		};
	return n;
}
