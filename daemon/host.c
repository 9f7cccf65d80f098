/* See host.h: every callback from one room into the next. */
#include "daemon/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/host_events.h"
#include "daemon/profile/idle.h"

#define SHUTDOWN_NS (6 * NS_PER_S)
#define STATES_NS   (30 * NS_PER_S) /* of threads are told so long after the last question */

struct host {
	struct loop *loop;
	const struct config *config;
	struct worker *worker;
	struct targets *targets;
	struct discovery *discovery;
	struct live *live;
	struct store *store;
	struct symbols *symbols;
	struct host_sampling *sampling;
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
	struct locks *locks; /* NULL without memory for it */
	uint64_t states_until_ns; /* somebody looks at its threads; 0 = nobody */
	struct host_sampling_target sampling;
	struct profile_books booked; /* already given to the live end */
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
		if (e)
			(void)locks_new(clock_mono_ns(), &e->locks);
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
	if (e && e->locks)
		locks_session(e->locks);
}

static void on_reset(void *userdata, struct target *t)
{
	struct entry *e = t->userdata;

	(void)userdata;
	if (e)
		live_source_reset(e->source);
	if (e && e->locks)
		locks_reset(e->locks);
}

static void on_mapping(void *userdata, struct target *t, const struct wire_mapping *m,
		       const char *path)
{
	struct host *h = userdata;

	if (t->state != TARGET_GONE)
		symbols_want(h->symbols, t->jvm.pid, m->start, m->end, path, m->build_id,
			     m->build_id_len);
}

static void on_sample(void *userdata, struct target *t, const struct stream_sample *s)
{
	struct host *h = userdata;
	uint64_t real_ns = s->mono_ns + (uint64_t)t->real_minus_mono_ns;
	struct entry *e = entry_of(h, t);
	struct kernel_stack *stacks = NULL;
	struct live_kernel kernel = { 0 };

	if (e) {
		stacks = host_sampling_take(h->sampling, &e->sampling, t, s, &kernel);
		live_add(e->source, t->stream, s, &kernel, real_ns, target_interval_ns(t));
	}
	kernel_stack_free_all(stacks);
	if (e && e->locks)
		locks_sample(e->locks, s, clock_mono_ns());
	for (struct host_listener *l = h->listeners, *next; l; l = next) {
		next = l->next;
		l->on_sample(l->userdata, t, s, real_ns);
	}
}

static void on_wall(void *userdata, struct target *t, const struct stream_sample *s)
{
	struct entry *e = entry_of(userdata, t);

	if (e)
		host_add_wall(e->source, t, s);
}

static void on_alloc(void *userdata, struct target *t, const struct stream_alloc *a)
{
	struct entry *e = entry_of(userdata, t);

	if (e)
		host_add_alloc(e->source, t, a);
}

/* ---- target -> locks: waits and threads ---- */

static void on_lock(void *userdata, struct target *t, const struct stream_lock *w)
{
	struct host *h = userdata;
	struct entry *e = entry_of(h, t);
	bool idle = idle_wait(t->stream, w);
	uint64_t end_ns = w->begin_ns + w->duration_ns + (uint64_t)t->real_minus_mono_ns;

	if (e)
		host_add_lock(e->source, t, w, idle);
	if (e && e->locks)
		locks_add(e->locks, w, idle, clock_mono_ns());
	if (w->flags & WIRE_LOCK_CLOSED)
		return;
	for (struct host_listener *l = h->listeners, *next; l; l = next) {
		next = l->next;
		l->on_lock(l->userdata, t, w, idle, end_ns);
	}
}

static void on_thread(void *userdata, struct target *t, const struct wire_thread *w,
		      const char *name)
{
	struct entry *e = entry_of(userdata, t);

	if (e && e->locks)
		locks_thread(e->locks, w, name, clock_mono_ns());
}

static void on_thread_state(void *userdata, struct target *t, const struct wire_state *w)
{
	struct entry *e = entry_of(userdata, t);

	if (e && e->locks)
		locks_state(e->locks, w, clock_mono_ns());
}

static void on_virtual(void *userdata, struct target *t, const struct stream_virtual *v)
{
	struct entry *e = entry_of(userdata, t);

	if (e && e->locks)
		locks_virtual(e->locks, v);
}

const struct locks *host_locks(const struct target *t)
{
	const struct entry *e = t->userdata;

	return e ? e->locks : NULL;
}

bool host_want_states(struct target *t)
{
	struct entry *e = t->userdata;
	bool known = e && e->states_until_ns;

	if (!e || t->state != TARGET_STREAMING)
		return false;
	e->states_until_ns = clock_mono_ns() + STATES_NS;
	if (!known) {
		t->states = true;
		(void)target_start(t, t->interval_ns, t->no_budget);
	}
	return known;
}

/* Nobody looks any more: looking at all threads every few seconds is not for nothing. */
static void expire_states(struct host *h)
{
	uint64_t now = clock_mono_ns();

	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct entry *e = t->userdata;

		if (!e || !e->states_until_ns || now < e->states_until_ns)
			continue;
		e->states_until_ns = 0;
		t->states = false;
		if (t->state == TARGET_STREAMING)
			(void)target_start(t, t->interval_ns, t->no_budget);
	}
}

/* ---- target <-> host engine ---- */

static struct kernel_stacks *stacks_of(void *userdata, pid_t pid)
{
	struct host *h = userdata;

	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct entry *e = t->userdata;

		if (t->jvm.pid == pid && t->state == TARGET_STREAMING)
			return e ? e->sampling.stacks : NULL;
	}
	return NULL;
}

static uint64_t on_host_wanted(void *userdata, struct target *t, uint64_t interval_ns)
{
	const struct entry *e = t->userdata;
	struct host *h = userdata;

	return host_sampling_wanted(h->sampling, e ? &e->sampling : NULL, interval_ns);
}

static void on_state(void *userdata, struct target *t, enum target_state next)
{
	struct host *h = userdata;

	struct entry *e = t->userdata;

	if (next != TARGET_STREAMING)
		host_sampling_stop(h->sampling, t);
	if (next != TARGET_STREAMING && e && e->locks)
		locks_session(e->locks);
	for (struct host_listener *l = h->listeners, *after; l && next == TARGET_GONE; l = after) {
		after = l->next;
		l->on_gone(l->userdata, t);
	}
}

const struct host_engine *host_sampler(struct host *h, const char **ret_why)
{
	return host_sampling_engine(h->sampling, ret_why);
}

const struct kernel_frames *host_kernel_frames(struct host *h)
{
	return host_sampling_frames(h->sampling);
}

/* ---- target -> profile: the books ---- */

static void on_ledger(void *userdata, struct target *t)
{
	struct entry *e = entry_of(userdata, t);
	struct host *h = userdata;
	struct profile_books delta;

	if (!e)
		return;
	host_sampling_follow(h->sampling, t, &e->sampling);
	delta = host_new_books(t, &e->booked);
	live_add_books(e->source, &delta);
}

static void on_free(void *userdata, struct target *t)
{
	struct entry *e = t->userdata;
	struct host *h = userdata;

	host_sampling_stop(h->sampling, t);
	if (!e)
		return;
	host_sampling_target_deinit(&e->sampling);
	live_source_free(e->source);
	locks_free(e->locks);
	free(e);
	t->userdata = NULL;
}

static const struct targets_ops target_calls = {
	.on_state = on_state,
	.on_hello = on_hello,
	.on_reset = on_reset,
	.on_mapping = on_mapping,
	.on_sample = on_sample,
	.on_wall = on_wall,
	.on_alloc = on_alloc,
	.on_lock = on_lock,
	.on_thread = on_thread,
	.on_thread_state = on_thread_state,
	.on_virtual = on_virtual,
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

static void expire_stacks(struct host *h)
{
	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct entry *e = t->userdata;

		if (e)
			host_sampling_expire(&e->sampling);
	}
}

static void on_second(void *userdata)
{
	struct host *h = userdata;

	expire_states(h);
	host_sampling_tick(h->sampling);
	expire_stacks(h);
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
		r = host_sampling_new(h->config, stacks_of, h, &h->sampling);
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
	host_sampling_free(h->sampling);
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

/* ---- recordings ------------------------------------------------------------------------------ */

struct recording {
	struct host *host;
	uint32_t pid;
	uint64_t start_time;
	struct live_tap *tap;
	uint64_t interval_ns;
	unsigned events;
	char thread[RECORDING_THREAD_MAX]; /* "" = all */
};

static struct target *target_of(const struct recording *r)
{
	struct target *t = NULL;

	while ((t = targets_next(r->host->targets, t)))
		if ((uint32_t)t->jvm.pid == r->pid && t->jvm.start_time == r->start_time)
			return t;
	return NULL;
}

/* A START that asks for what the recording needs: more events, another interval. */
static int ask_more(struct recording *r, struct target *t)
{
	unsigned before = target_asked_events(t);

	t->wanted_events = r->events;
	if (r->events & 1u << WIRE_EVENT_WALL)
		snprintf(t->wanted_threads, sizeof(t->wanted_threads), "%s", r->thread);
	if (r->interval_ns)
		return target_start(t, r->interval_ns, true);
	return target_asked_events(t) == before ? 0 : target_start(t, t->interval_ns, t->no_budget);
}

/* And one that no longer does. */
static void ask_less(struct recording *r, struct target *t)
{
	unsigned before = target_asked_events(t);

	t->wanted_events = 0;
	t->wanted_threads[0] = '\0';
	if (r->interval_ns)
		(void)target_start(t, r->host->config->cpu_interval_ns, false);
	else if (target_asked_events(t) != before)
		(void)target_start(t, t->interval_ns, t->no_budget);
}

int recording_new(struct host *h, struct target *t, const struct recording_options *o,
		  struct recording **ret)
{
	struct recording *r = calloc(1, sizeof(*r));
	struct entry *e = entry_of(h, t);
	int error = -ENOMEM;

	/* what came before is not the recording's */
	if (e && t->stream)
		on_ledger(h, t);
	if (r && e)
		error = live_tap_new(e->source, o->events, &r->tap);
	if (error < 0) {
		free(r);
		return error;
	}
	r->host = h;
	r->pid = (uint32_t)t->jvm.pid;
	r->start_time = t->jvm.start_time;
	r->interval_ns = o->interval_ns;
	r->events = o->events;
	snprintf(r->thread, sizeof(r->thread), "%s", o->thread ? o->thread : "");
	live_tap_profile(r->tap)->no_budget = o->interval_ns != 0;
	error = ask_more(r, t);
	if (error < 0) {
		t->wanted_events = 0;
		t->wanted_threads[0] = '\0';
		live_tap_free(r->tap);
		free(r);
		return error;
	}
	*ret = r;
	return 0;
}

struct recording *recording_finish(struct recording *r, struct profile **ret)
{
	const struct profile_filter filter = { .thread = r && r->thread[0] ? r->thread : NULL };
	struct target *t;

	if (!r)
		return NULL;
	t = target_of(r);
	if (t)
		ask_less(r, t);
	if (t && t->stream)
		on_ledger(r->host, t);
	if (ret && profile_new(ret) == 0) {
		(void)profile_merge(*ret, live_tap_profile(r->tap), &filter);
		profile_symbolize(*ret, lookup, r->host->symbols);
	}
	live_tap_free(r->tap);
	free(r);
	return NULL;
}

unsigned recording_events(const struct recording *r)
{
	return r->events;
}

uint64_t recording_samples(const struct recording *r)
{
	return profile_samples(live_tap_profile(r->tap));
}

const char *recording_notes(const struct recording *r, char *buf, size_t size)
{
	const struct target *t = target_of(r);
	size_t n = 0;

	*buf = '\0';
	for (int i = 0; t && i < NOTES_MAX && n < size; i++)
		if (t->notes[i].step[0])
			n += (size_t)snprintf(buf + n, size - n, "%s%s: %s", n ? "; " : "",
					      t->notes[i].step, t->notes[i].what);
	return buf;
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
