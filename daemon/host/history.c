/*
 * Between memory and disk: closed windows go to the store, through the worker; host_query() puts
 * the two together.
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
	struct host *host;
	struct store *store;
	struct profile *window;
};

static void run_append(void *userdata)
{
	struct append_job *job = userdata;

	(void)store_append(job->store, job->window);
}

static void done_append(void *userdata)
{
	struct append_job *job = userdata;

	job->host->appending--;
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
	job->host = h;
	job->store = h->store;
	(void)profile_merge(job->window, window, NULL);
	host_symbolize(h, job->window);
	h->appending++;
	if (worker_submit(h->worker, run_append, done_append, job) < 0) {
		h->windows_dropped++;
		done_append(job);
	}
}

bool host_is_settled(const struct host *h)
{
	return h->appending == 0;
}

/* ---- queries --------------------------------------------------------------------------------- */

int host_query(struct host *h, uint64_t from, uint64_t to, const struct profile_filter *filter,
	       struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	uint64_t oldest;
	int r = profile_new(&p);

	host_take_cpu_of_all(h);
	if (r == 0)
		r = live_query(h->live, from, to, filter, p);
	/* the store has what is older than memory; windows in both would count twice */
	oldest = live_oldest_real_ns(h->live);
	if (to > oldest)
		to = oldest;
	if (r == 0 && h->store && from < to)
		r = store_query(h->store, from, to, filter, p);
	if (r < 0)
		return r;
	host_symbolize(h, p);
	*ret = TAKE_PTR(p);
	return 0;
}
