/* See thread_ids.h: the entries are in two hash tables, one for each number. */
#include "daemon/host/thread_ids.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"

#define PLACES	    1024u /* of each table; a power of two */
#define SHARE	    100 /* looks take at most the hundredth part of the time */
#define ENTRIES_MAX (2 * THREAD_IDS_MAX) /* entries of the folder that one look reads */
#define TID_MAX	    (1u << 22) /* the kernel's largest tid, + 1 */

struct entry {
	uint32_t ns_tid, host_tid;
	uint64_t java_id; /* of the last Java thread with this number; 0 = unknown */
	uint32_t look; /* number of the last look that found it */
	struct entry *next_ns, *next_host; /* the next one in its bucket */
};

struct thread_ids {
	DIR *tasks;
	uint32_t n, seed, look;
	uint64_t next_ns; /* CLOCK_MONOTONIC; no look before */
	bool more; /* the last look did not reach the end of the folder */
	struct entry *by_ns[PLACES], *by_host[PLACES];
};

static uint32_t thread_ids_place_of(const struct thread_ids *t, uint32_t tid)
{
	return (uint32_t)((tid ^ t->seed) * 0x9e3779b97f4a7c15ull >> 54) & (PLACES - 1);
}

struct thread_ids *thread_ids_new(int task_dfd)
{
	struct thread_ids *t = calloc(1, sizeof(*t));

	if (t)
		t->tasks = fdopendir(task_dfd);
	if (!t || !t->tasks) {
		close(task_dfd);
		free(t);
		return NULL;
	}
	(void)!getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK);
	return t;
}

static void unlink_ns(struct thread_ids *t, const struct entry *e)
{
	struct entry **link = &t->by_ns[thread_ids_place_of(t, e->ns_tid)];

	while (*link != e)
		link = &(*link)->next_ns;
	*link = e->next_ns;
}

static void thread_ids_drop(struct thread_ids *t, struct entry *e)
{
	struct entry **link = &t->by_host[thread_ids_place_of(t, e->host_tid)];

	while (*link != e)
		link = &(*link)->next_host;
	*link = e->next_host;
	unlink_ns(t, e);
	free(e);
	t->n--;
}

struct thread_ids *thread_ids_free(struct thread_ids *t)
{
	if (!t)
		return NULL;
	for (uint32_t i = 0; i < PLACES; i++)
		while (t->by_ns[i])
			thread_ids_drop(t, t->by_ns[i]);
	closedir(t->tasks);
	free(t);
	return NULL;
}

static struct entry *find_ns(const struct thread_ids *t, uint32_t ns_tid)
{
	struct entry *e = t->by_ns[thread_ids_place_of(t, ns_tid)];

	while (e && e->ns_tid != ns_tid)
		e = e->next_ns;
	return e;
}

static struct entry *find_host(const struct thread_ids *t, uint32_t host_tid)
{
	struct entry *e = t->by_host[thread_ids_place_of(t, host_tid)];

	while (e && e->host_tid != host_tid)
		e = e->next_host;
	return e;
}

uint32_t thread_ids_host(const struct thread_ids *t, uint32_t ns_tid)
{
	const struct entry *e = find_ns(t, ns_tid);

	return e ? e->host_tid : THREAD_ID_FOREIGN | (ns_tid & (THREAD_ID_FOREIGN - 1));
}

uint32_t thread_ids_container(const struct thread_ids *t, uint32_t host_tid)
{
	const struct entry *e = find_host(t, host_tid);

	return e ? e->ns_tid : 0;
}

/* ---- looks ---- */

/* Drops threads that have ended, when there is no room; nobody has asked about them for long. */
static void thread_ids_make_room(struct thread_ids *t)
{
	for (uint32_t i = 0; t->n >= THREAD_IDS_MAX && i < PLACES; i++)
		for (struct entry *e = t->by_ns[i], *next; e; e = next) {
			next = e->next_ns;
			if (e->look + 1 < t->look)
				thread_ids_drop(t, e);
		}
}

/* Adds a pair of numbers, each of which another thread may have had before. */
static void thread_ids_add(struct thread_ids *t, uint32_t ns_tid, uint32_t host_tid)
{
	struct entry *e, **place;

	if ((e = find_host(t, host_tid)))
		thread_ids_drop(t, e);
	if ((e = find_ns(t, ns_tid)))
		thread_ids_drop(t, e);
	thread_ids_make_room(t);
	e = t->n < THREAD_IDS_MAX ? calloc(1, sizeof(*e)) : NULL;
	if (!e)
		return;
	e->ns_tid = ns_tid;
	e->host_tid = host_tid;
	e->look = t->look;
	place = &t->by_ns[thread_ids_place_of(t, ns_tid)];
	e->next_ns = *place;
	*place = e;
	place = &t->by_host[thread_ids_place_of(t, host_tid)];
	e->next_host = *place;
	*place = e;
	t->n++;
}

static uint32_t container_number(int tasks_dfd, const char *host_tid)
{
	struct proc_status status;
	char path[32], text[4096];

	snprintf(path, sizeof(path), "%.16s/status", host_tid);
	if (proc_read(tasks_dfd, path, text, sizeof(text)) <= 0 ||
	    !proc_parse_status(text, &status) || status.ns_pid <= 0)
		return 0;
	return (uint32_t)status.ns_pid;
}

/* Reads one thread's status file. true = it could be read. */
static bool thread_ids_look_at(struct thread_ids *t, const char *name)
{
	unsigned long host_tid = strtoul(name, NULL, 10);
	struct entry *e;
	uint32_t ns_tid;

	if (!host_tid || host_tid >= TID_MAX)
		return false;
	e = find_host(t, (uint32_t)host_tid);
	/* a number that the look before did not find is another thread's now */
	if (e && e->look + 1 >= t->look) {
		e->look = t->look;
		return false;
	}
	ns_tid = container_number(dirfd(t->tasks), name);
	if (ns_tid && ns_tid < TID_MAX)
		thread_ids_add(t, ns_tid, (uint32_t)host_tid);
	return true;
}

/* Reads the threads in the task directory. If the last call stopped early this one continues there;
 * otherwise threads that it did not reach would seem to have ended. */
static void thread_ids_look(struct thread_ids *t)
{
	const struct dirent *d;
	uint32_t entries = 0, reads = 0;

	if (!t->more) {
		rewinddir(t->tasks);
		t->look++;
	}
	t->more = true;
	while (entries++ < ENTRIES_MAX && reads < THREAD_IDS_LOOKS) {
		d = readdir(t->tasks);
		if (!d) {
			t->more = false;
			return;
		}
		reads += thread_ids_look_at(t, d->d_name);
	}
	t->more = entries <= ENTRIES_MAX;
}

void thread_ids_reported(struct thread_ids *t, uint32_t ns_tid, uint64_t java_id, uint64_t now_ns)
{
	struct entry *e = find_ns(t, ns_tid);
	uint64_t begin_ns;

	/* another thread has the number now */
	if (e && java_id && e->java_id && e->java_id != java_id) {
		thread_ids_drop(t, e);
		e = NULL;
	}
	if (!e && now_ns >= t->next_ns) {
		begin_ns = clock_mono_ns();
		thread_ids_look(t);
		t->next_ns = now_ns + (clock_mono_ns() - begin_ns) * SHARE;
		e = find_ns(t, ns_tid);
	}
	if (e && java_id)
		e->java_id = java_id;
}
