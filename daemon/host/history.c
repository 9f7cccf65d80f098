/*
 * Between memory and disk, through the worker: closed windows go to the store; host_query() takes
 * the live part at once and the store's part in the worker.
 */
#include "daemon/host/host_priv.h"

#include <errno.h>
#include <string.h>

#define AGREE_MAX 64 /* processes */

struct names {
	struct symbols *symbols;
	const struct profile *profile;
};

static const char *lookup(void *userdata, const struct profile_process *q, const char *module,
			  uint64_t offset)
{
	const struct names *n = userdata;
	const char *name = NULL;

	if (q)
		return symbols_lookup(n->symbols, (int)q->pid, q->start_time, module, offset);
	/* out of the store, nameless: containers have other files at the same paths, and only what
	 * all of them agree on is a name */
	for (uint32_t i = 0; i < n->profile->n_processes && i < AGREE_MAX; i++) {
		const char *here = lookup(userdata, &n->profile->processes[i], module, offset);

		if (!here || (name && strcmp(here, name) != 0))
			return NULL;
		name = here;
	}
	return n->profile->n_processes <= AGREE_MAX ? name : NULL;
}

void host_symbolize(struct host *h, struct profile *p)
{
	struct names names = { h->symbols, p };

	profile_symbolize(p, lookup, &names);
}

/* ---- windows to the store -------------------------------------------------------------------- */

struct append_job {
	struct store *store;
	struct profile *window;
};

static void run_append(void *userdata)
{
	struct append_job *job = userdata;

	(void)store_append(job->store, job->window);
	profile_free(job->window);
	free(job);
}

void host_on_window(void *userdata, const struct profile *window)
{
	struct host *h = userdata;
	struct append_job *job;

	if (!h->store)
		return;
	job = calloc(1, sizeof(*job));
	if (!job || profile_new(&job->window) < 0) {
		free(job);
		h->windows_dropped++;
		return;
	}
	job->store = h->store;
	(void)profile_merge(job->window, window, NULL);
	host_symbolize(h, job->window);
	if (worker_submit(h->worker, run_append, NULL, job) < 0) {
		h->windows_dropped++;
		profile_free(job->window);
		free(job);
	}
}

/* ---- queries --------------------------------------------------------------------------------- */

struct query {
	struct host *host;
	struct profile *profile;
	uint64_t from, to; /* of the part in the store */
	struct profile_filter filter;
	uint32_t *pids;
	uint64_t *start_times;
	char *thread;
	int error;
	void (*done)(void *userdata, struct profile *p, int error);
	void *userdata;
};

static void query_free(struct query *q)
{
	profile_free(q->profile);
	free(q->pids);
	free(q->start_times);
	free(q->thread);
	free(q);
}

static void run_query(void *userdata)
{
	struct query *q = userdata;

	if (q->from < q->to)
		q->error = store_query(q->host->store, q->from, q->to, &q->filter, q->profile);
}

static void done_query(void *userdata)
{
	struct query *q = userdata;
	struct profile *p = TAKE_PTR(q->profile);

	if (q->error < 0)
		p = profile_free(p);
	else
		host_symbolize(q->host, p);
	q->done(q->userdata, p, q->error < 0 ? q->error : 0);
	query_free(q);
}

static int copy_filter(struct query *q, const struct profile_filter *f)
{
	if (!f)
		return 0;
	q->filter.events = f->events;
	q->filter.no_idle = f->no_idle;
	q->filter.n_pids = f->n_pids;
	if (f->n_pids) {
		q->pids = calloc(f->n_pids, sizeof(*q->pids));
		q->start_times = calloc(f->n_pids, sizeof(*q->start_times));
		if (!q->pids || !q->start_times)
			return -ENOMEM;
		memcpy(q->pids, f->pids, f->n_pids * sizeof(*q->pids));
		memcpy(q->start_times, f->start_times, f->n_pids * sizeof(*q->start_times));
		q->filter.pids = q->pids;
		q->filter.start_times = q->start_times;
	}
	if (f->thread) {
		q->thread = strdup(f->thread);
		q->filter.thread = q->thread;
		if (!q->thread)
			return -ENOMEM;
	}
	return 0;
}

int host_query(struct host *h, uint64_t from, uint64_t to, const struct profile_filter *filter,
	       void (*done)(void *userdata, struct profile *p, int error), void *userdata)
{
	struct query *q = calloc(1, sizeof(*q));
	uint64_t oldest;
	int r = -ENOMEM;

	if (!q)
		return r;
	q->host = h;
	q->done = done;
	q->userdata = userdata;
	r = copy_filter(q, filter);
	if (r == 0)
		r = profile_new(&q->profile);
	host_take_cpu_of_all(h);
	if (r == 0)
		r = live_query(h->live, from, to, &q->filter, q->profile);
	if (r < 0) {
		query_free(q);
		return r;
	}
	/* the store has what is older than memory; windows in both would count twice */
	oldest = live_oldest_real_ns(h->live);
	q->from = from;
	q->to = h->store ? (to < oldest ? to : oldest) : from;
	r = worker_submit(h->worker, run_query, done_query, q);
	if (r < 0)
		query_free(q);
	return r;
}
