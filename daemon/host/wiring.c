/*
 * Every callback from one room into the next, in the order of the data: discovery -> target ->
 * profile, locks, timeline, symbols, listeners (tail). Errors do not travel back: what finds no
 * memory is left out here and shows in the counters of its room.
 */
#include "daemon/host/host_priv.h"
#include "daemon/host/ledgers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/log_limit.h"
#include "daemon/core/tenant.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/host/history_events.h"
#include "daemon/host/moments.h"
#include "daemon/profile/idle.h"

/* A rest of which the engine still knew in the last second goes on. */
#define RESTS_NS (2 * NS_PER_S)

/* ---- discovery -> target --------------------------------------------------------------------- */

static bool wiring_add(struct host *h, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	static struct log_limit limit = { .burst = 20, .per_s = 1 };
	int r = targets_add(h->targets, jvm, seen_mono_ns, NULL);

	if (r < 0 && r != -EEXIST && log_allowed(&limit, "event=target.refused"))
		log_warn("target.refused", "pid=%d error=%s", jvm->pid, log_str(strerror(-r)));
	return r != -ENOSPC && r != -ENOMEM; /* later there may be room */
}

static bool on_jvm(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	struct host *h = userdata;

	return (h->names && names_ask(h->names, jvm, seen_mono_ns)) ||
	       wiring_add(h, jvm, seen_mono_ns);
}

static void wiring_on_named(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	struct host *h = userdata;

	if (h->discovery && !wiring_add(h, jvm, seen_mono_ns))
		discovery_ask_again(h->discovery, jvm->pid);
}

/* The next living JVM of a container after @prev; NULL: the first, and the end. */
static struct target *wiring_next_of(struct host *h, const char *container_id, struct target *prev)
{
	struct target *t = targets_next(h->targets, prev);

	while (t && (t->state == TARGET_GONE || strcmp(t->jvm.container_id, container_id) != 0))
		t = targets_next(h->targets, t);
	return t;
}

static bool wiring_lives(void *userdata, const char *container_id)
{
	return wiring_next_of(userdata, container_id, NULL) != NULL;
}

static void wiring_on_named_later(void *userdata, const struct jvm *said)
{
	struct host *h = userdata;
	struct target *t = NULL;
	struct jvm jvm;

	while ((t = wiring_next_of(h, said->container_id, t))) {
		jvm = t->jvm;
		names_add(&jvm, said);
		target_set_names(t, &jvm);
	}
}

const struct names_ops host_names_calls = {
	.on_jvm = wiring_on_named,
	.on_later = wiring_on_named_later,
	.lives = wiring_lives,
};

static void on_exit_status(void *userdata, pid_t pid, int status)
{
	struct host *h = userdata;

	targets_exited(h->targets, pid, status);
}

static void on_displaced(void *userdata, struct target *t)
{
	struct host *h = userdata;

	if (h->discovery)
		discovery_ask_again(h->discovery, t->jvm.pid);
}

const struct discovery_ops host_discovery_calls = {
	.on_jvm = on_jvm,
	.on_exit = on_exit_status,
};

/* ---- numbers of threads -------------------------------------------------------------------- */

static void open_ids(struct host_entry *e, const struct target *t)
{
	char path[32];
	int dfd;

	if (e->ids || t->jvm.ns_pid == t->jvm.pid)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->jvm.pid);
	dfd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dfd >= 0)
		e->ids = thread_ids_new(dfd);
}

/* The host's number for the stream's number of a thread; virtual threads have none. */
static uint32_t wiring_number_of(const struct host_entry *e, uint32_t tid)
{
	return e && e->ids && tid && tid < WIRE_VIRTUAL_TID ? thread_ids_host(e->ids, tid) : tid;
}

uint32_t host_number_of(const struct host_entry *e, uint32_t tid)
{
	return wiring_number_of(e, tid);
}

struct host_thread host_thread_of(const struct target *t, uint32_t number)
{
	const struct host_entry *e = t->userdata;

	if (number >= WIRE_VIRTUAL_TID)
		return (struct host_thread){ .is_virtual = true,
					     .virtual_id = number - WIRE_VIRTUAL_TID };
	if (number & THREAD_ID_FOREIGN)
		return (struct host_thread){ .ns_tid = number & ~THREAD_ID_FOREIGN };
	return (struct host_thread){ .tid = number,
				     .ns_tid = e && e->ids ? thread_ids_container(e->ids, number)
							   : number };
}

const char *host_thread_name(const struct target *t, uint32_t number)
{
	const struct locks *l = host_locks(t);
	const char *name = l ? locks_thread_name(l, number) : "";
	uint32_t tid = number < WIRE_VIRTUAL_TID ? host_thread_of(t, number).ns_tid : number;

	/* the locks forget an ended thread that has not waited for one */
	return *name || !t->stream || !tid ? name : stream_thread_name(t->stream, tid);
}

/* ---- target -> profile, symbols -------------------------------------------------------------- */

/* Which times off the CPU have no events now, besides those below the minimum that a report has; ""
 * = none. */
static const char *wiring_note_of_missing(const struct host *h, const struct offcpu_engine *engine,
					  const struct target *t)
{
	struct offcpu_minimums now[OFFCPU_PARTS] = { 0 };
	struct offcpu_counts counts;
	bool queued = offcpu_engine_target(engine, t->jvm.pid, &counts, now) &&
		      (now[OFFCPU_QUEUED].record_ns > h->config->offcpu_min_ns ||
		       now[OFFCPU_QUEUED].samples);

	if (offcpu_engine_spares(engine, t->jvm.pid) >= OFFCPU_SPARES_RECORDS)
		return queued ? PROFILE_NOTE_SPARED_QUEUED : PROFILE_NOTE_SPARED;
	return queued ? PROFILE_NOTE_QUEUED : "";
}

/* In the header of every report: what a reader of its samples, or of its times off the CPU, should
 * know. */
static const char *wiring_note(const struct host *h, const struct target *t)
{
	const char *why, *note = target_engine_note(t);
	const struct offcpu_engine *engine = host_sampling_offcpu(h->sampling, &why);
	uint64_t rested_ns;
	unsigned of;

	if (*note || !engine)
		return note;
	(void)offcpu_engine_measured(engine, t->jvm.pid, &of);
	rested_ns = offcpu_engine_rested_ns(engine, t->jvm.pid);
	if (of && rested_ns && clock_mono_ns() - rested_ns < RESTS_NS)
		return PROFILE_NOTE_OFFCPU;
	return wiring_note_of_missing(h, engine, t);
}

static struct live_process wiring_describe(const struct host *h, const struct target *t)
{
	char tenant[TENANT_SIZE];

	return (struct live_process){
		.pid = (uint32_t)t->jvm.pid,
		.ns_pid = (uint32_t)t->jvm.ns_pid,
		.start_time = t->jvm.start_time,
		.name = t->jvm.name,
		.container_id = t->jvm.container_id,
		.container = t->jvm.container,
		.pod = t->jvm.pod,
		.jdk = t->jdk,
		.labels = t->labels,
		.note = wiring_note(h, t),
		.tenant = tenant_number(tenant_name(tenant, t->jvm.container_id, t->jvm.uid)),
	};
}

static struct host_entry *entry_new(struct host *h, const struct target *t)
{
	struct host_entry *e = calloc(1, sizeof(*e));
	struct live_process info = wiring_describe(h, t);

	if (e && live_source_new(h->live, &info, &e->source) < 0) {
		free(e);
		return NULL;
	}
	if (e)
		(void)locks_new(clock_mono_ns(), &e->locks);
	if (e)
		(void)timeline_new(
			h->timelines,
			&(struct timeline_process){ info.pid, info.start_time, info.tenant },
			&e->timeline);
	return e;
}

struct host_entry *host_entry_of(struct host *h, struct target *t)
{
	if (!t->userdata)
		t->userdata = entry_new(h, t);
	return t->userdata;
}

/* For callbacks of the stream, which have the target only. */
static struct host_entry *wiring_entry_of(struct target *t)
{
	return host_entry_of(targets_userdata(t), t);
}

static void wiring_on_hello(void *userdata, struct target *t)
{
	struct host *h = userdata;
	struct live_process info = wiring_describe(h, t);
	struct host_entry *e = host_entry_of(h, t);

	if (e) {
		live_source_update(e->source, &info);
		open_ids(e, t);
	}
	if (e && e->locks)
		locks_session(e->locks);
	if (e)
		pauses_forget(&e->pauses);
	host_take_cpu(h, t);
}

static void on_labels(void *userdata, struct target *t)
{
	struct live_process info = wiring_describe(userdata, t);
	struct host_entry *e = t->userdata;

	if (e)
		live_source_update(e->source, &info);
}

static void wiring_on_reset(void *userdata, struct target *t)
{
	struct host_entry *e = t->userdata;

	(void)userdata;
	host_offcpu_reset(t);
	if (e)
		live_source_reset(e->source);
	if (e && e->locks)
		locks_reset(e->locks);
	if (e && e->timeline)
		timeline_reset(e->timeline);
}

static void wiring_on_mapping(void *target, const struct wire_mapping *m, const char *path)
{
	const struct target *t = target;
	struct host *h = targets_userdata(t);
	char tenant[TENANT_SIZE];
	const struct symbols_process p = {
		.pid = t->jvm.pid,
		.start_time = t->jvm.start_time,
		.tenant = tenant_name(tenant, t->jvm.container_id, t->jvm.uid),
	};

	if (t->state != TARGET_GONE)
		symbols_want(h->symbols, &p, m->start, m->end, path, m->build_id, m->build_id_len);
}

static void wiring_on_sample(void *userdata, struct target *t, const struct stream_sample *s)
{
	struct host *h = userdata;
	uint64_t real_ns = s->mono_ns + (uint64_t)t->real_minus_mono_ns;
	struct host_entry *e = host_entry_of(h, t);
	struct stream_sample sample = *s;
	uint32_t tid = s->tid;
	struct kernel_stack *stacks = NULL;
	struct live_kernel kernel = { 0 };

	/* its thread has the stream's own number */
	if (e)
		stacks = host_sampling_take(h->sampling, &e->sampling, t, s, &kernel);
	s = &sample;
	sample.tid = host_history_tid(wiring_number_of(e, sample.tid), sample.thread);
	if (e)
		live_add(e->source, t->stream, s, &kernel, real_ns, target_interval_ns(t));
	sample.tid = wiring_number_of(e, tid);
	kernel_stack_free_all(stacks);
	if (e && e->locks)
		locks_sample(e->locks, s, loop_now(h->loop)->mono_ns);
	if (e)
		host_moment_sample(e, t, TIMELINE_CPU, s, sample.tid);
	for (struct host_listener *l = h->listeners, *next; l; l = next) {
		next = l->next;
		l->on_sample(l->userdata, t, s, real_ns);
	}
}

static void wiring_on_wall(void *target, const struct stream_sample *s)
{
	struct host_entry *e = wiring_entry_of(target);
	struct stream_sample sample = *s;

	sample.tid = wiring_number_of(e, s->tid);
	if (e)
		host_add_wall(e->source, target, &sample);
	if (e)
		host_moment_sample(e, target, TIMELINE_WALL, &sample, sample.tid);
}

static void wiring_on_alloc(void *target, const struct stream_alloc *a)
{
	struct host_entry *e = wiring_entry_of(target);
	struct stream_alloc alloc = *a;

	alloc.tid = wiring_number_of(e, a->tid);
	if (e)
		host_add_alloc(e->source, target, &alloc);
}

static void wiring_on_offcpu(void *target, const struct stream_offcpu *o)
{
	if (wiring_entry_of(target))
		host_offcpu_agent(target, o);
}

/* ---- target -> locks: waits and threads ------------------------------------------------------ */

static void wiring_on_lock(void *target, const struct stream_lock *w)
{
	struct target *t = target;
	struct host *h = targets_userdata(t);
	struct host_entry *e = host_entry_of(h, t);
	bool idle = idle_wait(t->stream, w);
	uint64_t end_ns = w->begin_ns + w->duration_ns + (uint64_t)t->real_minus_mono_ns;
	struct stream_lock wait = *w;

	host_offcpu_lock(t, w, idle);
	wait.tid = wiring_number_of(e, w->tid);
	wait.owner_tid = wiring_number_of(e, w->owner_tid);
	w = &wait;
	if (e)
		host_add_lock(e->source, t, w, idle);
	if (e && e->locks)
		locks_add(e->locks, t->stream, w, idle, clock_mono_ns());
	if (e) {
		host_ledgers_wait(e, w);
		host_moment_lock(e, t, w, idle);
	}
	if (w->flags & WIRE_LOCK_CLOSED)
		return;
	for (struct host_listener *l = h->listeners, *next; l; l = next) {
		next = l->next;
		l->on_lock(l->userdata, t, w, idle, end_ns);
	}
}

static void wiring_on_thread(void *target, const struct wire_thread *w, const char *name)
{
	struct host_entry *e = wiring_entry_of(target);
	struct wire_thread thread = *w;

	if (e && e->ids && w->tid < WIRE_VIRTUAL_TID && !(w->flags & WIRE_THREAD_ENDED))
		thread_ids_reported(e->ids, w->tid, w->java_id, clock_mono_ns());
	thread.tid = wiring_number_of(e, w->tid);
	if (e && e->locks)
		locks_thread(e->locks, &thread, name, clock_mono_ns());
}

static void wiring_on_thread_state(void *userdata, const struct wire_state *w, const char *name)
{
	struct target *t = userdata;
	struct host_entry *e = wiring_entry_of(t);
	struct wire_state state = *w;

	(void)name;
	state.tid = wiring_number_of(e, w->tid);
	if (e && e->locks)
		locks_state(e->locks, &state, clock_mono_ns());
	if (e && target_events(t) & 1u << WIRE_EVENT_OFFCPU)
		host_ledgers_state(e, &state);
}

static void wiring_on_virtual(void *target, const struct stream_virtual *v)
{
	struct host_entry *e = wiring_entry_of(target);

	if (e && e->locks)
		locks_virtual(e->locks, v);
}

static void wiring_on_pause(void *target, const struct wire_pause *w, const char *operation)
{
	struct host_entry *e = wiring_entry_of(target);

	if (e && pauses_add(&e->pauses, w))
		host_moment_pause(e, target, w, operation);
}

/* ---- target <-> host engine ------------------------------------------------------------------ */

struct kernel_stacks *host_stacks_of(void *userdata, pid_t pid)
{
	struct host *h = userdata;

	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct host_entry *e = t->userdata;

		if (t->jvm.pid == pid && t->state == TARGET_STREAMING)
			return e ? e->sampling.stacks : NULL;
	}
	return NULL;
}

static uint64_t on_host_wanted(void *userdata, struct target *t, uint64_t interval_ns)
{
	const struct host_entry *e = t->userdata;
	struct host *h = userdata;

	return host_sampling_wanted(h->sampling, e ? &e->sampling : NULL, interval_ns);
}

/* Frees what is needed only while the target is alive. */
static void host_entry_end(struct host_entry *e)
{
	e->timeline = timeline_free(e->timeline);
	e->ledger = time_ledger_free(e->ledger);
}

static void on_state(void *userdata, struct target *t, enum target_state next)
{
	struct host_entry *e = t->userdata;
	struct host *h = userdata;

	if (next != TARGET_STREAMING)
		host_offcpu_end(t);
	if (next != TARGET_STREAMING) {
		host_sampling_stop(h->sampling, t);
		host_leave_cpu(h, t);
	}
	if (next != TARGET_STREAMING && e && e->locks)
		locks_session(e->locks);
	if (next == TARGET_GONE)
		symbols_end(h->symbols, t->jvm.pid, t->jvm.start_time);
	if (next == TARGET_GONE && e)
		live_source_end(e->source);
	if (next == TARGET_GONE && e)
		host_entry_end(e);
	for (struct host_listener *l = h->listeners, *after; l && next == TARGET_GONE; l = after) {
		after = l->next;
		l->on_gone(l->userdata, t);
	}
}

/* ---- target -> profile: the counters --------------------------------------------------------- */

/* Passes the note on when it changes. */
static void note_engine(const struct host *h, struct host_entry *e, const struct target *t)
{
	struct live_process info = wiring_describe(h, t);

	if (info.note == e->note)
		return;
	e->note = info.note;
	live_source_update(e->source, &info);
}

void host_take_accounts(struct host *h, struct target *t)
{
	struct host_entry *e = host_entry_of(h, t);
	struct profile_accounts delta;

	if (!e)
		return;
	host_sampling_follow(h->sampling, t, &e->sampling);
	note_engine(h, e, t);
	delta = host_new_accounts(t, &e->booked);
	live_add_accounts(e->source, &delta);
	if (target_events(t) & 1u << WIRE_EVENT_OFFCPU)
		live_note_interval(e->source, WIRE_EVENT_OFFCPU,
				   target_interval(t, WIRE_EVENT_OFFCPU));
}

static void count_waits(struct locks *l, const struct target *t)
{
	struct stream_counts c;
	struct locks_counts now;

	target_counts(t, &c);
	now = (struct locks_counts){
		.shorter = c.ledger.counter[WIRE_COUNTER_SHORT_WAITS],
		.shorter_ns = c.ledger.counter[WIRE_COUNTER_SHORT_WAITS_NS],
		.idle = c.ledger.counter[WIRE_COUNTER_IDLE_WAITS],
		.idle_ns = c.ledger.counter[WIRE_COUNTER_IDLE_WAITS_NS],
		.lost = c.of[WIRE_EVENT_LOCK].taken - c.of[WIRE_EVENT_LOCK].delivered,
		.lost_ns =
			c.of[WIRE_EVENT_LOCK].taken_weight - c.of[WIRE_EVENT_LOCK].delivered_weight,
	};
	locks_count(l, &now, clock_mono_ns());
}

static void wiring_on_ledger(void *userdata, struct target *t)
{
	const struct host_entry *e = host_entry_of(userdata, t);

	host_take_accounts(userdata, t);
	if (e && e->locks)
		count_waits(e->locks, t);
}

static void wiring_on_message(void *userdata)
{
	host_offcpu_before_message(userdata);
}

static void on_free(void *userdata, struct target *t)
{
	struct host_entry *e = t->userdata;
	struct host *h = userdata;

	host_sampling_stop(h->sampling, t);
	if (!e)
		return;
	host_sampling_target_deinit(&e->sampling);
	live_source_free(e->source);
	offcpu_join_free(e->offcpu);
	pauses_forget(&e->pauses);
	h->offcpu_last = NULL;
	locks_free(e->locks);
	timeline_free(e->timeline);
	time_ledger_free(e->ledger);
	thread_ids_free(e->ids);
	free(e);
	t->userdata = NULL;
}

const struct targets_ops host_target_calls = {
	.on_displaced = on_displaced,
	.on_state = on_state,
	.on_hello = wiring_on_hello,
	.on_reset = wiring_on_reset,
	.on_sample = wiring_on_sample,
	.stream = {
		.on_mapping = wiring_on_mapping,
		.on_wall = wiring_on_wall,
		.on_alloc = wiring_on_alloc,
		.on_offcpu = wiring_on_offcpu,
		.on_lock = wiring_on_lock,
		.on_thread = wiring_on_thread,
		.on_state = wiring_on_thread_state,
		.on_virtual = wiring_on_virtual,
		.on_pause = wiring_on_pause,
	},
	.on_ledger = wiring_on_ledger,
	.on_message = wiring_on_message,
	.on_labels = on_labels,
	.on_host_wanted = on_host_wanted,
	.on_free = on_free,
};
