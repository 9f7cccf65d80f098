/* See kernel_stacks.h. */
#include "daemon/profile/kernel_stacks.h"

#include <errno.h>
#include <string.h>

#define BUCKETS 256

/* A thread that was interrupted in the kernel not long ago. */
struct thread {
	struct thread *next;
	uint32_t tid;
	uint64_t sample_ns; /* time of its last sample; 0 = none since this entry was made */
	uint64_t seen_ns; /* time of its last stack */
	struct kernel_stack *first, **end; /* oldest first */
};

struct kernel_stacks {
	struct kernel_stacks_counts *counts;
	struct thread *buckets[BUCKETS];
	unsigned n_threads, n_stacks;
};

int kernel_stacks_new(struct kernel_stacks_counts *counts, struct kernel_stacks **ret)
{
	struct kernel_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->counts = counts;
	*ret = s;
	return 0;
}

void kernel_stack_free_all(struct kernel_stack *first)
{
	for (struct kernel_stack *next; first; first = next) {
		next = first->next;
		free(first);
	}
}

static struct thread *kernel_stacks_find(struct kernel_stacks *s, uint32_t tid)
{
	struct thread *t = s->buckets[tid % BUCKETS];

	while (t && t->tid != tid)
		t = t->next;
	return t;
}

static struct thread *kernel_stacks_find_or_add(struct kernel_stacks *s, uint32_t tid)
{
	struct thread *t = kernel_stacks_find(s, tid);

	if (t || s->n_threads >= KERNEL_STACKS_THREADS)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	t->end = &t->first;
	t->next = s->buckets[tid % BUCKETS];
	s->buckets[tid % BUCKETS] = t;
	s->n_threads++;
	return t;
}

static struct kernel_stack *kernel_stacks_pop(struct kernel_stacks *s, struct thread *t)
{
	struct kernel_stack *k = t->first;

	t->first = k->next;
	if (!t->first)
		t->end = &t->first;
	k->next = NULL;
	s->n_stacks--;
	return k;
}

static void give_up_first(struct kernel_stacks *s, struct thread *t)
{
	free(kernel_stacks_pop(s, t));
	s->counts->unmatched++;
}

struct kernel_stacks *kernel_stacks_free(struct kernel_stacks *s)
{
	if (!s)
		return NULL;
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct thread *t = s->buckets[i], *next; t; t = next) {
			next = t->next;
			while (t->first)
				give_up_first(s, t);
			free(t);
		}
	free(s);
	return NULL;
}

void kernel_stacks_add(struct kernel_stacks *s, uint32_t tid, uint64_t mono_ns, const uint64_t *ips,
		       unsigned n)
{
	struct thread *t =
		s->n_stacks < KERNEL_STACKS_MAX ? kernel_stacks_find_or_add(s, tid) : NULL;
	struct kernel_stack *k;

	if (n > KERNEL_STACKS_FRAMES)
		n = KERNEL_STACKS_FRAMES;
	k = t ? malloc(sizeof(*k) + n * sizeof(*ips)) : NULL;
	s->counts->taken++;
	if (!k) {
		s->counts->lost++;
		return;
	}
	*k = (struct kernel_stack){ .mono_ns = mono_ns, .n = n };
	memcpy(k->ips, ips, n * sizeof(*ips));
	*t->end = k;
	t->end = &k->next;
	t->seen_ns = mono_ns;
	s->n_stacks++;
}

unsigned kernel_stacks_take(struct kernel_stacks *s, uint32_t tid, uint64_t mono_ns,
			    struct kernel_stack **ret)
{
	struct thread *t = kernel_stacks_find(s, tid);
	struct kernel_stack *oldest = NULL, **end = &oldest;
	unsigned n = 0;

	*ret = NULL;
	if (!t)
		return 0;
	while (t->first && t->first->mono_ns <= t->sample_ns)
		give_up_first(s, t);
	for (; t->first && t->first->mono_ns <= mono_ns; n++) {
		*end = kernel_stacks_pop(s, t);
		end = &(*end)->next;
	}
	s->counts->matched += n;
	for (; n > KERNEL_STACKS_A_SAMPLE; n--) {
		struct kernel_stack *k = oldest;

		oldest = k->next;
		free(k);
		s->counts->matched--;
		s->counts->unmatched++;
	}
	if (mono_ns > t->sample_ns)
		t->sample_ns = mono_ns;
	*ret = oldest;
	return n;
}

void kernel_stacks_expire(struct kernel_stacks *s, uint64_t now_mono_ns)
{
	uint64_t old = now_mono_ns > KERNEL_STACKS_AGE_NS ? now_mono_ns - KERNEL_STACKS_AGE_NS : 0;

	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct thread **link = &s->buckets[i], *t; (t = *link);) {
			while (t->first && t->first->mono_ns < old)
				give_up_first(s, t);
			if (t->first || t->seen_ns >= old) {
				link = &t->next;
				continue;
			}
			*link = t->next;
			free(t);
			s->n_threads--;
		}
}
