/* See host.h: every callback from one room into the next. */
#include "daemon/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"

#define SHUTDOWN_NS	(6 * NS_PER_S)
#define SAMPLER_WAIT_NS (60 * NS_PER_S) /* after a refusal, before the kernel is asked again */

struct host {
	struct loop *loop;
	const struct config *config;
	struct worker *worker;
	struct targets *targets;
	struct discovery *discovery;
	struct live *live;
	struct store *store;
	struct symbols *symbols;
	struct host_engine *sampler; /* NULL = not needed yet, or refused */
	struct kernel_frames *kernel; /* NULL = not wanted, or no sampler */
	uint64_t sampler_refused_mono_ns; /* 0 = it was not */
	char sampler_why[HOST_ENGINE_WHY_MAX];
	struct loop_timer *second;
	struct host_listener *listeners;
	uint64_t start_mono_ns;
	uint64_t windows_dropped; /* the worker was busy */
	/* shutdown */
	struct loop_timer *shutdown_timer;
	uint64_t shutdown_by_mono_ns;
	void (*on_down)(void *userdata);
	void *down_userdata;
};

/* What the host keeps of a target. */
struct entry {
	struct live_source *source;
	struct kernel_stacks *kernel; /* that wait for their samples; NULL = none came yet */
	struct profile_losses booked; /* already given to the live end */
	bool timers_only; /* the host engine would not have it */
};

/* ---- discovery -> target --------------------------------------------------------------------- */

static void on_jvm(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	struct host *h = userdata;
	int r = targets_add(h->targets, jvm, seen_mono_ns, NULL);

	if (r < 0 && r != -EEXIST)
		log_warn("target.refused", "pid=%d error=%s", jvm->pid, log_str(strerror(-r)));
}

static void on_exit_status(void *userdata, pid_t pid, int status)
{
	struct host *h = userdata;

	targets_exited(h->targets, pid, status);
}

/* ---- target -> profile, symbols -------------------------------------------------------------- */

static struct live_process describe(const struct target *t)
{
	return (struct live_process){
		.pid = (uint32_t)t->jvm.pid,
		.ns_pid = (uint32_t)t->jvm.ns_pid,
		.start_time = t->jvm.start_time,
		.name = t->jvm.name,
		.container_id = t->jvm.container_id,
		.container = t->jvm.container,
		.pod = t->jvm.pod,
		.jdk = t->jdk,
	};
}

static struct entry *entry_of(struct host *h, struct target *t)
{
	struct live_process info = describe(t);
	struct entry *e = t->userdata;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (e && live_source_new(h->live, &info, &e->source) < 0) {
			free(e);
			e = NULL;
		}
		t->userdata = e;
	}
	return e;
}

static void on_hello(void *userdata, struct target *t)
{
	struct live_process info = describe(t);
	struct entry *e = entry_of(userdata, t);

	if (e)
		live_source_update(e->source, &info);
}

static void on_reset(void *userdata, struct target *t)
{
	struct entry *e = t->userdata;

	(void)userdata;
	if (e)
		live_source_reset(e->source);
}

static void on_mapping(void *userdata, struct target *t, const struct wire_mapping *m, const char *path)
{
	struct host *h = userdata;

	if (t->state != TARGET_GONE)
		symbols_want(h->symbols, t->jvm.pid, m->start, m->end, path, m->build_id, m->build_id_len);
}

static void on_sample(void *userdata, struct target *t, const struct stream_sample *s)
{
	struct host *h = userdata;
	uint64_t real_ns = s->mono_ns + (uint64_t)t->real_minus_mono_ns;
	struct entry *e = entry_of(h, t);
	struct kernel_stack *stacks = NULL;
	struct live_kernel kernel = { 0 };

	if (e && e->kernel)
		stacks = kernel_frames_take(h->kernel, e->kernel, t->stream, s, &kernel);
	if (e)
		live_add(e->source, t->stream, s, &kernel, real_ns, target_interval_ns(t));
	kernel_stack_free_all(stacks);
	for (struct host_listener *l = h->listeners, *next; l; l = next) {
		next = l->next;
		l->on_sample(l->userdata, t, s, real_ns);
	}
}

/* ---- target <-> host engine ----------------------------------------------------------------------- */

static struct kernel_stacks *stacks_of(void *userdata, pid_t pid)
{
	struct host *h = userdata;

	for (struct target *t = targets_next(h->targets, NULL); t; t = targets_next(h->targets, t)) {
		struct entry *e = t->userdata;

		if (t->jvm.pid == pid && t->state == TARGET_STREAMING)
			return e ? e->kernel : NULL;
	}
	return NULL;
}

static void open_kernel_frames(struct host *h)
{
	int r = h->config->kernel_stacks ? kernel_frames_new(h->sampler, stacks_of, h, &h->kernel) : 0;

	if (r < 0)
		log_warn("kernel_frames.refused", "error=%s", log_str(strerror(-r)));
}

const struct kernel_frames *host_kernel_frames(struct host *h)
{
	return h->kernel;
}

static bool have_sampler(struct host *h)
{
	uint64_t now = clock_mono_ns();

	if (h->sampler || !h->config->host_engine)
		return h->sampler;
	if (h->sampler_refused_mono_ns && now < h->sampler_refused_mono_ns + SAMPLER_WAIT_NS)
		return false;
	if (host_engine_new(false, &h->sampler, h->sampler_why) == 0) {
		h->sampler_why[0] = '\0';
		open_kernel_frames(h);
		return true;
	}
	if (!h->sampler_refused_mono_ns)
		log_warn("host_engine.refused", "why=%s", log_str(h->sampler_why));
	h->sampler_refused_mono_ns = now;
	return false;
}

/* Loaded at the first interval that CPU timers cannot keep: most hosts never ask for one. */
static uint64_t on_host_wanted(void *userdata, struct target *t, uint64_t interval_ns)
{
	const struct entry *e = t->userdata;
	struct timespec tick = { 0, 0 };
	struct host *h = userdata;
	uint64_t shortest_ns;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	if (interval_ns >= (uint64_t)tick.tv_nsec || (e && e->timers_only) || !have_sampler(h))
		return 0;
	shortest_ns = host_engine_interval_min();
	if (shortest_ns >= (uint64_t)tick.tv_nsec)
		return 0;
	return interval_ns > shortest_ns ? interval_ns : shortest_ns;
}

/*
 * What the agent says of its handler and its interval, once a second and when it changes. It may ask
 * for fewer signals than START did, never for more: the shortest interval of all is every CPU's.
 */
static void follow(struct host *h, struct target *t, struct entry *e)
{
	struct host_engine_target want;
	struct stream_counts c;
	int r = -EOPNOTSUPP;

	stream_counts(t->stream, &c);
	want.signo = (int)(c.ledger.counter[WIRE_COUNTER_HOST_SIGNAL] & 127);
	want.handler = c.ledger.counter[WIRE_COUNTER_HOST_HANDLER];
	want.interval_ns = c.ledger.counter[WIRE_COUNTER_INTERVAL_NS];
	if (want.interval_ns < t->host_interval_ns)
		want.interval_ns = t->host_interval_ns;
	if (t->state != TARGET_STREAMING || !t->host_interval_ns || !want.signo) {
		if (h->sampler)
			host_engine_remove(h->sampler, t->jvm.pid);
		return;
	}
	if (h->kernel && !e->kernel)
		(void)kernel_frames_stacks_new(h->kernel, &e->kernel);
	if (h->sampler)
		r = host_engine_set(h->sampler, t->jvm.pid, &want);
	if (r == 0 || e->timers_only)
		return;
	log_warn("host_engine.target", "pid=%d error=%s", t->jvm.pid, log_str(strerror(-r)));
	e->timers_only = true;
	(void)target_start(t, t->interval_ns, t->no_budget);
}

static void on_state(void *userdata, struct target *t, enum target_state next)
{
	struct host *h = userdata;

	if (h->sampler && next != TARGET_STREAMING)
		host_engine_remove(h->sampler, t->jvm.pid);
	for (struct host_listener *l = h->listeners, *after; l && next == TARGET_GONE; l = after) {
		after = l->next;
		l->on_gone(l->userdata, t);
	}
}

const struct host_engine *host_sampler(struct host *h, const char **ret_why)
{
	*ret_why = h->config->host_engine ? h->sampler_why : "events.cpu.host_engine is false";
	return h->sampler;
}

/* ---- target -> profile: the books ------------------------------------------------------------------ */

static void on_ledger(void *userdata, struct target *t)
{
	struct entry *e = entry_of(userdata, t);
	struct profile_losses now = { 0 }, delta;
	struct stream_counts c;
	const struct stream_books *b = &c.of[WIRE_EVENT_CPU];

	if (!e)
		return;
	follow(userdata, t, e);
	if (e->kernel)
		kernel_stacks_expire(e->kernel, clock_mono_ns());
	target_counts(t, &c);
	now.taken = b->taken;
	now.taken_ns = b->taken_weight;
	now.delivered = b->delivered;
	now.delivered_ns = b->delivered_weight;
	now.dropped = b->taken - b->delivered;
	now.dropped_ns = b->taken_weight - b->delivered_weight;
	delta = (struct profile_losses){
		now.taken - e->booked.taken,
		now.taken_ns - e->booked.taken_ns,
		now.delivered - e->booked.delivered,
		now.delivered_ns - e->booked.delivered_ns,
		now.dropped - e->booked.dropped,
		now.dropped_ns - e->booked.dropped_ns,
	};
	e->booked = now;
	live_add_losses(e->source, &delta);
}

static void on_free(void *userdata, struct target *t)
{
	struct entry *e = t->userdata;
	struct host *h = userdata;

	if (h->sampler)
		host_engine_remove(h->sampler, t->jvm.pid);
	if (!e)
		return;
	kernel_stacks_free(e->kernel);
	live_source_free(e->source);
	free(e);
	t->userdata = NULL;
}

static const struct targets_ops target_calls = {
	.on_state = on_state,
	.on_hello = on_hello,
	.on_reset = on_reset,
	.on_mapping = on_mapping,
	.on_sample = on_sample,
	.on_ledger = on_ledger,
	.on_host_wanted = on_host_wanted,
	.on_free = on_free,
};

/* ---- profile -> store ------------------------------------------------------------------------ */

static const char *lookup(void *userdata, const char *module, uint64_t offset)
{
	return symbols_lookup(userdata, 0, module, offset);
}

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

static void on_window(void *userdata, const struct profile *window)
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
	profile_symbolize(job->window, lookup, h->symbols);
	if (worker_submit(h->worker, run_append, NULL, job) < 0) {
		h->windows_dropped++;
		profile_free(job->window);
		free(job);
	}
}

static void on_second(void *userdata)
{
	struct host *h = userdata;

	if (h->kernel)
		kernel_frames_drain(h->kernel);
	live_tick(h->live, clock_real_ns());
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_rooms(struct host *h, bool discover, bool persist, struct fault *f)
{
	static const struct discovery_ops discovery_calls = { .on_jvm = on_jvm,
							      .on_exit = on_exit_status };
	char path[300];
	int r;

	r = worker_new(h->loop, &h->worker);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "start the worker: ");
	snprintf(path, sizeof(path), "%s/symbols", h->config->state_dir);
	r = symbols_new(h->loop, path, &h->symbols);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "%.80s: ", path);
	snprintf(path, sizeof(path), "%s/segments", h->config->state_dir);
	if (persist) {
		r = store_new(path, h->config->retention_ns, h->config->store_max_bytes, &h->store);
		if (r < 0)
			return fault_set(f, -r, FAULT_INTERNAL, "%.80s: ", path);
	}
	r = live_new(on_window, h, &h->live);
	if (r == 0)
		r = targets_new(h->loop, h->config, &target_calls, h, &h->targets);
	if (r == 0)
		r = loop_timer_add(h->loop, NS_PER_S, NS_PER_S, on_second, h, &h->second);
	if (r == 0 && discover)
		r = discovery_new(h->loop, h->config, &discovery_calls, h, &h->discovery);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL, "open the rooms: ") : 0;
}

int host_new(struct loop *loop, const struct config *config, bool discover, bool persist,
	     struct host **ret, struct fault *f)
{
	CLEANUP(host_freep) struct host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return fault_set(f, ENOMEM, FAULT_INTERNAL, "no memory");
	h->loop = loop;
	h->config = config;
	h->start_mono_ns = clock_mono_ns();
	r = open_rooms(h, discover, persist, f);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(h);
	return 0;
}

struct host *host_free(struct host *h)
{
	if (!h)
		return NULL;
	discovery_free(h->discovery);
	loop_timer_free(h->second);
	loop_timer_free(h->shutdown_timer);
	targets_free(h->targets);
	kernel_frames_free(h->kernel);
	host_engine_free(h->sampler);
	live_free(h->live); /* its last window goes to the worker */
	worker_free(h->worker);
	store_free(h->store);
	symbols_free(h->symbols);
	free(h);
	return NULL;
}

static void on_shutdown_tick(void *userdata)
{
	struct host *h = userdata;

	if (!targets_quiet(h->targets) && clock_mono_ns() < h->shutdown_by_mono_ns)
		return;
	h->shutdown_timer = loop_timer_free(h->shutdown_timer);
	h->on_down(h->down_userdata);
}

void host_shutdown(struct host *h, void (*done)(void *userdata), void *userdata)
{
	if (h->shutdown_timer)
		return;
	h->on_down = done;
	h->down_userdata = userdata;
	h->discovery = discovery_free(h->discovery);
	h->shutdown_by_mono_ns = clock_mono_ns() + SHUTDOWN_NS;
	targets_stop(h->targets);
	(void)loop_timer_add(h->loop, 0, 10 * NS_PER_MS, on_shutdown_tick, h, &h->shutdown_timer);
}

struct loop *host_loop(struct host *h)
{
	return h->loop;
}

const struct config *host_config(struct host *h)
{
	return h->config;
}

struct targets *host_targets(struct host *h)
{
	return h->targets;
}

struct live *host_live(struct host *h)
{
	return h->live;
}

struct store *host_store(struct host *h)
{
	return h->store;
}

struct worker *host_worker(struct host *h)
{
	return h->worker;
}

struct symbols *host_symbols(struct host *h)
{
	return h->symbols;
}

struct discovery *host_discovery(struct host *h)
{
	return h->discovery;
}

uint64_t host_start_mono_ns(struct host *h)
{
	return h->start_mono_ns;
}

void host_listen(struct host *h, struct host_listener *l)
{
	l->next = h->listeners;
	h->listeners = l;
}

void host_unlisten(struct host *h, struct host_listener *l)
{
	struct host_listener **link;

	for (link = &h->listeners; *link && *link != l; link = &(*link)->next)
		;
	if (*link)
		*link = l->next;
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

	if (q->error < 0) {
		p = profile_free(p);
	} else {
		profile_symbolize(p, lookup, q->host->symbols);
	}
	q->done(q->userdata, p, q->error < 0 ? q->error : 0);
	query_free(q);
}

static int copy_filter(struct query *q, const struct profile_filter *f)
{
	if (!f)
		return 0;
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

/* ---- recordings ------------------------------------------------------------------------------ */

struct recording {
	struct host *host;
	uint32_t pid;
	uint64_t start_time;
	struct live_tap *tap;
	uint64_t interval_ns;
};

static struct target *target_of(const struct recording *r)
{
	struct target *t = NULL;

	while ((t = targets_next(r->host->targets, t)))
		if ((uint32_t)t->jvm.pid == r->pid && t->jvm.start_time == r->start_time)
			return t;
	return NULL;
}

int recording_new(struct host *h, struct target *t, uint64_t interval_ns, struct recording **ret)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct entry *e = entry_of(h, t);
	int error = -ENOMEM;

	if (r && e)
		error = live_tap_new(e->source, &r->tap);
	if (error < 0) {
		free(r);
		return error;
	}
	r->host = h;
	r->pid = (uint32_t)t->jvm.pid;
	r->start_time = t->jvm.start_time;
	r->interval_ns = interval_ns;
	if (interval_ns) {
		live_tap_profile(r->tap)->no_budget = true;
		error = target_start(t, interval_ns, true);
		if (error < 0) {
			live_tap_free(r->tap);
			free(r);
			return error;
		}
	}
	*ret = r;
	return 0;
}

struct recording *recording_finish(struct recording *r, struct profile **ret)
{
	struct target *t;

	if (!r)
		return NULL;
	t = target_of(r);
	if (t && r->interval_ns)
		(void)target_start(t, r->host->config->cpu_interval_ns, false);
	if (t && t->stream)
		on_ledger(r->host, t);
	if (ret && profile_new(ret) == 0) {
		(void)profile_merge(*ret, live_tap_profile(r->tap), NULL);
		profile_symbolize(*ret, lookup, r->host->symbols);
	}
	live_tap_free(r->tap);
	free(r);
	return NULL;
}

uint64_t recording_samples(const struct recording *r)
{
	return profile_samples(live_tap_profile(r->tap));
}

bool recording_runs(const struct recording *r, char *buf, size_t size)
{
	const struct target *t = target_of(r);

	if (t && t->state == TARGET_STREAMING)
		return true;
	if (!t || t->state == TARGET_GONE)
		snprintf(buf, size, "the JVM ended");
	else
		snprintf(buf, size, "the JVM is %s%s%s", target_state_names[t->state],
			 t->fault.code ? ": " : "", t->fault.code ? t->fault.what : "");
	return false;
}
