/*
 * Between memory and disk: the worker brings closed windows into the store, and host_query()
 * combines memory and store.
 */
#include "daemon/host/host_priv.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/profile/offcpu_history.h"

#define AGREE_MAX	 64 /* processes that must agree on a name */
#define JOURNAL_JOBS_MAX 8
/* bytes of an encoded slice; a larger one goes to disk only with its window */
#define JOURNAL_SLICE_MAX (32ul << 20)

struct names {
	struct symbols *symbols;
	const struct profile *profile;
};

static const char *host_history_lookup(void *userdata, const struct profile_process *q,
				       const char *module, uint64_t offset)
{
	const struct names *n = userdata;
	const char *name = NULL;

	if (q)
		return symbols_lookup(n->symbols, (int)q->pid, q->start_time, module, offset);
	/* frames from the store do not say whose file they mean, and containers have different
	 * files at the same path: a name counts only if all processes agree on it */
	for (uint32_t i = 0; i < n->profile->n_processes && i < AGREE_MAX; i++) {
		const char *here =
			host_history_lookup(userdata, &n->profile->processes[i], module, offset);

		if (!here || (name && strcmp(here, name) != 0))
			return NULL;
		name = here;
	}
	return n->profile->n_processes <= AGREE_MAX ? name : NULL;
}

void host_symbolize(struct host *h, struct profile *p)
{
	struct names names = { h->symbols, p };

	profile_symbolize(p, host_history_lookup, &names);
	symbols_give_back(h->symbols);
}

/* ---- windows to the store -------------------------------------------------------------------- */

struct append_job {
	struct host *host;
	struct store *store;
	struct profile *window;
	int result;
};

/* Counts samples that never reach the history; kindling-upload reports them as lost. */
static void note_not_stored(struct host *h, const struct profile *window)
{
	for (uint32_t i = 0; i < window->n_rows; i++)
		if (!window->rows[i].idle)
			h->not_stored[window->rows[i].event] += window->rows[i].samples;
}

static void run_append(void *userdata)
{
	struct append_job *job = userdata;

	job->result = store_append(job->store, job->window);
	store_upkeep(job->store);
}

/* Logs one line when the history stops, and one when it goes on. */
static void history_log_result(struct host *h, int result)
{
	bool was = h->stands_still;
	struct store_counts c;

	if (result == -EBUSY)
		store_missed(h->store);
	h->stands_still = result < 0;
	store_counts(h->store, &c);
	if (h->stands_still && !was)
		log_warn("history.stopped", "error=%s",
			 result == -EBUSY ? "\"the disk is too slow for it\""
					  : log_str(strerror(-result)));
	else if (was && !h->stands_still)
		log_info("history.goes_on", "dropped_windows=%llu",
			 (unsigned long long)c.dropped_windows);
}

static void done_append(void *userdata)
{
	struct append_job *job = userdata;

	job->host->appending--;
	history_log_result(job->host, job->result);
	if (job->result < 0)
		note_not_stored(job->host, job->window);
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
	if (!job || offcpu_history_copy(window, OFFCPU_HISTORY_STACKS, &job->window) < 0) {
		free(job);
		h->windows_dropped++;
		note_not_stored(h, window);
		return;
	}
	job->host = h;
	job->store = h->store;
	host_symbolize(h, job->window);
	h->appending++;
	if (worker_submit(h->worker, run_append, done_append, job) < 0) {
		h->windows_dropped++;
		job->result = -EBUSY;
		done_append(job);
	}
}

/* ---- seconds to the journal ------------------------------------------------------------------ */

struct journal_job {
	struct host *host;
	struct store *store;
	uint64_t begin_real_ns;
	uint8_t *bytes;
	size_t len;
	bool written;
};

static void run_journal(void *userdata)
{
	struct journal_job *job = userdata;

	job->written = store_journal(job->store, job->begin_real_ns, job->bytes, job->len) == 0;
}

static void done_journal(void *userdata)
{
	struct journal_job *job = userdata;

	job->host->journaling--;
	if (job->written)
		host_gaps_journaled(job->host, job->begin_real_ns + NS_PER_S);
	else if (job->host->live) /* not at the daemon's end */
		live_slice_lost(job->host->live, job->begin_real_ns);
	free(job->bytes);
	free(job);
}

bool host_on_slice(void *userdata, const struct profile *slice)
{
	struct host *h = userdata;
	struct journal_job *job;
	bool too_large = false;

	if (!h->store)
		return true;
	/* the disk is slow: leave the queue to windows */
	if (h->journaling >= JOURNAL_JOBS_MAX || !(job = calloc(1, sizeof(*job))))
		return false;
	*job = (struct journal_job){ .host = h,
				     .store = h->store,
				     .begin_real_ns = slice->begin_real_ns };
	h->journaling++;
	if (store_journal_bytes(slice, &job->bytes, &job->len) == 0) {
		too_large = job->len > JOURNAL_SLICE_MAX;
		if (!too_large && worker_submit(h->worker, run_journal, done_journal, job) == 0)
			return true;
	}
	done_journal(job);
	return too_large;
}

bool host_is_settled(const struct host *h)
{
	return h->appending == 0;
}

uint64_t host_settled_real_ns(struct host *h)
{
	if (h->appending == 0)
		h->settled_real_ns = live_open_real_ns(h->live);
	return h->settled_real_ns;
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
	/* the store is asked only for what is older than memory; a window in both would count
	 * twice */
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
