/*
 * Every callback from one room into the next, in the order data goes: discovery -> target ->
 * profile, locks, symbols, and who listens (tail). None of it fails upwards: what finds no memory
 * is left out here and shows in the counters of its room.
 */
#include "daemon/host/host_priv.h"

#include <errno.h>
#include <string.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/host/events.h"
#include "daemon/profile/idle.h"

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

const struct discovery_ops host_discovery_calls = {
	.on_jvm = on_jvm,
	.on_exit = on_exit_status,
};

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
		.note = target_engine_note(t), /* every report says it in its header */
	};
}

struct host_entry *host_entry_of(struct host *h, struct target *t)
{
	struct live_process info = describe(t);
	struct host_entry *e = t->userdata;

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
	struct host *h = userdata;
	struct host_entry *e = host_entry_of(h, t);

	if (e)
		live_source_update(e->source, &info);
	if (e && e->locks)
		locks_session(e->locks);
	host_take_cpu(h, t);
}

static void on_reset(void *userdata, struct target *t)
{
	struct host_entry *e = t->userdata;

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
	struct host_entry *e = host_entry_of(h, t);
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
	struct host_entry *e = host_entry_of(userdata, t);

	if (e)
		host_add_wall(e->source, t, s);
}

static void on_alloc(void *userdata, struct target *t, const struct stream_alloc *a)
{
	struct host_entry *e = host_entry_of(userdata, t);

	if (e)
		host_add_alloc(e->source, t, a);
}

/* ---- target -> locks: waits and threads ------------------------------------------------------ */

static void on_lock(void *userdata, struct target *t, const struct stream_lock *w)
{
	struct host *h = userdata;
	struct host_entry *e = host_entry_of(h, t);
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
	struct host_entry *e = host_entry_of(userdata, t);

	if (e && e->locks)
		locks_thread(e->locks, w, name, clock_mono_ns());
}

static void on_thread_state(void *userdata, struct target *t, const struct wire_state *w)
{
	struct host_entry *e = host_entry_of(userdata, t);

	if (e && e->locks)
		locks_state(e->locks, w, clock_mono_ns());
}

static void on_virtual(void *userdata, struct target *t, const struct stream_virtual *v)
{
	struct host_entry *e = host_entry_of(userdata, t);

	if (e && e->locks)
		locks_virtual(e->locks, v);
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

static void on_state(void *userdata, struct target *t, enum target_state next)
{
	struct host_entry *e = t->userdata;
	struct host *h = userdata;

	if (next != TARGET_STREAMING) {
		host_sampling_stop(h->sampling, t);
		host_leave_cpu(h, t);
	}
	if (next != TARGET_STREAMING && e && e->locks)
		locks_session(e->locks);
	for (struct host_listener *l = h->listeners, *after; l && next == TARGET_GONE; l = after) {
		after = l->next;
		l->on_gone(l->userdata, t);
	}
}

/* ---- target -> profile: the books ------------------------------------------------------------ */

/* The agent's engine, and what is to be said of it, changes with what the kernel allows. */
static void note_engine(struct host_entry *e, const struct target *t)
{
	struct live_process info = describe(t);

	if (info.note == e->note)
		return;
	e->note = info.note;
	live_source_update(e->source, &info);
}

void host_take_books(struct host *h, struct target *t)
{
	struct host_entry *e = host_entry_of(h, t);
	struct profile_books delta;

	if (!e)
		return;
	host_sampling_follow(h->sampling, t, &e->sampling);
	note_engine(e, t);
	delta = host_new_books(t, &e->booked);
	live_add_books(e->source, &delta);
}

static void on_ledger(void *userdata, struct target *t)
{
	host_take_books(userdata, t);
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
	locks_free(e->locks);
	free(e);
	t->userdata = NULL;
}

const struct targets_ops host_target_calls = {
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
