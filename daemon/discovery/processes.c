/* See processes.h. */
#include "daemon/discovery/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/discovery/look.h"

#define BUCKETS 4096 /* pids are assigned in sequence, so they spread by themselves */

struct processes {
	struct process *buckets[BUCKETS];
	struct process *due;
	uint32_t count, due_count;
	uint64_t refused;
};

int processes_new(struct processes **ret)
{
	struct processes *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret = t;
	return 0;
}

struct processes *processes_free(struct processes *t)
{
	if (!t)
		return NULL;
	for (unsigned i = 0; i < BUCKETS; i++)
		while (t->buckets[i])
			processes_remove(t, t->buckets[i]);
	free(t);
	return NULL;
}

struct process *processes_find(struct processes *t, pid_t pid)
{
	struct process *p = t->buckets[(unsigned)pid % BUCKETS];

	while (p && p->pid != pid)
		p = p->next;
	return p;
}

struct process *processes_get(struct processes *t, pid_t pid)
{
	struct process *p = processes_find(t, pid);

	if (p)
		return p;
	if (t->count < PROCESSES_MAX)
		p = calloc(1, sizeof(*p));
	if (!p) {
		t->refused++;
		return NULL;
	}
	p->pid = pid;
	p->next = t->buckets[(unsigned)pid % BUCKETS];
	t->buckets[(unsigned)pid % BUCKETS] = p;
	t->count++;
	return p;
}

void processes_remove(struct processes *t, struct process *p)
{
	struct process **link = &t->buckets[(unsigned)p->pid % BUCKETS];

	while (*link != p)
		link = &(*link)->next;
	*link = p->next;
	look_cancel(p->question);
	processes_set_due(t, p, 0);
	t->count--;
	free(p);
}

void processes_sweep(struct processes *t, uint32_t generation)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct process *p = t->buckets[i], *next; p; p = next) {
			next = p->next;
			if (p->generation != generation)
				processes_remove(t, p);
		}
	}
}

uint32_t processes_denied(const struct processes *t, pid_t *pids, uint32_t max)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < BUCKETS; i++) {
		for (const struct process *p = t->buckets[i]; p; p = p->next) {
			if (!p->denied || (!p->likely && strncmp(p->comm, "java", 4) != 0))
				continue;
			if (n < max)
				pids[n] = p->pid;
			n++;
		}
	}
	return n;
}

void processes_set_due(struct processes *t, struct process *p, uint64_t due_mono_ns)
{
	if (!p->due_mono_ns && due_mono_ns) {
		p->due_prev = NULL;
		p->due_next = t->due;
		if (t->due)
			t->due->due_prev = p;
		t->due = p;
		t->due_count++;
	} else if (p->due_mono_ns && !due_mono_ns) {
		if (p->due_prev)
			p->due_prev->due_next = p->due_next;
		else
			t->due = p->due_next;
		if (p->due_next)
			p->due_next->due_prev = p->due_prev;
		t->due_count--;
	}
	p->due_mono_ns = due_mono_ns;
}

struct process *processes_due(struct processes *t)
{
	return t->due;
}

uint32_t processes_due_count(const struct processes *t)
{
	return t->due_count;
}

uint64_t processes_refused(const struct processes *t)
{
	return t->refused;
}
