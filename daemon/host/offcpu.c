/*
 * Times off the CPU: the engine's records, the agents' records and waits for locks go into the join
 * of their target; its events go to the profile, the timeline and listeners.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/ground/clock.h"
#include "daemon/host/history_events.h"
#include "daemon/host/host_priv.h"
#include "daemon/host/ledgers.h"
#include "daemon/host/moments.h"
#include "daemon/profile/idle.h"

#define AGENT_THREAD "kindling"
#define TURN_NS	     (100 * NS_PER_MS) /* between two rounds over the ring and the joins */

/* ---- join -> profile, listeners ---------------------------------------------------------------
 */

static uint64_t offcpu_began_ns(const struct offcpu_event *e)
{
	return e->end_ns - (e->duration_ns < e->end_ns ? e->duration_ns : e->end_ns);
}

static uint64_t offcpu_woken_ns(const struct offcpu_event *e)
{
	return e->end_ns - (e->runqueue_ns < e->duration_ns ? e->runqueue_ns : 0);
}

/* A thread whose wait is over still has its status when a safepoint holds it on its way back, and
 * one without a stack has none. No Java thread begins to wait during a safepoint, so what lies
 * within one is that. */
static void offcpu_by_pause_around(const struct target *t, struct offcpu_event *e)
{
	const struct host_entry *entry = t->userdata;
	enum pauses_answer a = PAUSES_NONE;

	if (entry && e->kernel_class == OFFCPU_FUTEX)
		a = pauses_around(&entry->pauses, offcpu_began_ns(e), offcpu_woken_ns(e));
	if (a == PAUSES_NONE) {
		e->unsettled = !e->idle && e->reason != OFFCPU_REASON_SLEEP;
		return;
	}
	e->reason = a == PAUSES_GC ? OFFCPU_REASON_GC : OFFCPU_REASON_SAFEPOINT;
	e->idle = false;
}

static const char *offcpu_name_of(void *userdata, const struct stream_frame *f)
{
	const struct target *t = userdata;

	if (f->kind != WIRE_KIND_NATIVE)
		return NULL;
	return symbols_lookup(host_symbols(targets_userdata(t)), t->jvm.pid, t->jvm.start_time,
			      f->module, f->offset);
}

static enum offcpu_reason offcpu_by_native(const struct target *t, const struct offcpu_event *e)
{
	return offcpu_event_by_native(e, t->stream, offcpu_name_of, (void *)(uintptr_t)t);
}

/* Without the times of safepoints the thread's status tells only that the JVM holds it. The native
 * frames show if that is one of the JVM's locks, or the collector for which an allocation waits. */
static void offcpu_by_frames(const struct target *t, struct offcpu_event *e, const char *thread)
{
	enum offcpu_reason native;

	offcpu_event_by_wait(e, t->stream, thread);
	if (e->reason != OFFCPU_REASON_SAFEPOINT && e->reason != OFFCPU_REASON_GC)
		return;
	native = offcpu_by_native(t, e);
	if (native == OFFCPU_REASON_LOCK || native == OFFCPU_REASON_GC)
		e->reason = native;
}

/* The safepoint that held the thread. One that it holds stopped within it, so a thread whose leaf
 * waits, and which was off the CPU before the safepoint began, waited for its own reason, however
 * much of that time the safepoint lasted. @by_leaf: the event by its leaf alone. */
static enum pauses_answer offcpu_held_by(const struct host_entry *entry,
					 const struct offcpu_event *by_leaf)
{
	uint64_t began_ns = offcpu_began_ns(by_leaf);

	if (!entry)
		return PAUSES_UNKNOWN;
	if (by_leaf->reason != OFFCPU_REASON_OTHER && entry->pauses.known &&
	    began_ns >= entry->pauses.since_ns &&
	    pauses_around(&entry->pauses, began_ns, began_ns) == PAUSES_NONE &&
	    !pauses_unseen(&entry->pauses, began_ns, began_ns))
		return PAUSES_NONE;
	return pauses_during(&entry->pauses, began_ns, offcpu_woken_ns(by_leaf));
}

/* Decides for a thread that was "blocked in the VM", which may be a safepoint, or a lock or an
 * operation inside the JVM. The times of the safepoints, if they can be read, show which. While a
 * collector moves objects the status of a thread that waits cannot be read, so the frames decide if
 * no safepoint held it. */
static void offcpu_by_pauses(const struct target *t, struct offcpu_event *e, const char *thread)
{
	struct offcpu_event by_leaf = *e;

	offcpu_event_by_leaf(&by_leaf, t->stream, thread);
	switch (offcpu_held_by(t->userdata, &by_leaf)) {
	case PAUSES_NONE:
		*e = by_leaf;
		e->idle |= e->reason == OFFCPU_REASON_OTHER && idle_vm_thread(thread);
		/* the JVM lets its threads go before it writes down when the safepoint ended */
		e->unsettled = true;
		break;
	case PAUSES_SAFEPOINT: /* or most of a wait for a collector lay in some */
		e->reason = offcpu_by_native(t, e) == OFFCPU_REASON_GC ? OFFCPU_REASON_GC
								       : OFFCPU_REASON_SAFEPOINT;
		break;
	case PAUSES_GC:
		e->reason = OFFCPU_REASON_GC;
		break;
	default:
		offcpu_by_frames(t, e, thread);
		break;
	}
}

/* A futex of which only the kernel tells, in a thread that may be one of Java. */
static bool offcpu_is_untold(const struct offcpu_event *e)
{
	return e->kernel_class == OFFCPU_FUTEX && !e->has_stack && !e->idle;
}

static void offcpu_explain(void *userdata, struct offcpu_event *e)
{
	const struct target *t = userdata;
	const char *thread = stream_thread_name(t->stream, e->tid);
	enum offcpu_reason reason;

	offcpu_event_explain(e, t->stream, thread);
	if ((e->status >= WIRE_OFFCPU_SLEEP && e->status <= WIRE_OFFCPU_LOCK && e->has_stack) ||
	    offcpu_is_untold(e))
		offcpu_by_pause_around(t, e);
	else if (e->reason == OFFCPU_REASON_SAFEPOINT || e->reason == OFFCPU_REASON_GC)
		offcpu_by_pauses(t, e, thread);
	reason = e->reason;
	if (e->reason == OFFCPU_REASON_OTHER && e->has_stack && e->kernel_class == OFFCPU_FUTEX &&
	    !(e->idle && idle_vm_thread(thread)))
		e->reason = offcpu_by_native(t, e);
	/* a thread of Java that begins or ends has no Java frame, as those that wait for work */
	if (e->reason != reason)
		e->idle = false;
}

static void offcpu_to_profile(struct host *h, const struct host_entry *entry,
			      const struct target *t, const struct offcpu_event *e)
{
	struct kernel_frames *names = host_sampling_names(h->sampling);
	struct live_kernel kernel;
	struct kernel_stack *k = NULL;

	if (names && e->n_ips)
		k = calloc(1, sizeof(*k) + e->n_ips * sizeof(k->ips[0]));
	if (k) {
		k->mono_ns = e->end_ns;
		k->n = e->n_ips;
		memcpy(k->ips, e->ips, e->n_ips * sizeof(k->ips[0]));
		kernel = kernel_frames_of(names, k);
	}
	host_add_offcpu(entry->source, t, e, k ? &kernel : NULL);
	free(k);
}

/* The JVM's own threads wait in futexes for work or for each other, or sleep, several times a
 * second also in an idle JVM. After a few such waits with a stack, which has no Java frame or
 * always the same ones, further stacks would tell nothing, and cost the JVM most of what these
 * events cost it. A Java thread that starts has one such wait, under the name of the thread that
 * started it. Nearly as little is told by the stacks of a thread that waits for work again and
 * again. */
static void offcpu_spare(struct host *h, const struct target *t, const struct offcpu_event *e)
{
	if (e->has_stack && e->idle && offcpu_is_idle_vm_thread(e->reason, e->thread) &&
	    (e->kernel_class == OFFCPU_FUTEX || e->kernel_class == OFFCPU_SLEEP))
		offcpu_engine_bare_stack(h->offcpu, t->jvm.pid, e->tid);
	if (e->ends_told)
		offcpu_engine_told_habit(h->offcpu, t->jvm.pid, e->tid, 0);
	if (e->as_usual)
		offcpu_engine_idle_habit(h->offcpu, t->jvm.pid, e->tid,
					 (enum offcpu_class)e->kernel_class, e->as_always,
					 e->end_ns);
}

static const char *offcpu_waker(const struct target *t, const struct offcpu_event *e)
{
	return e->waker_own_tid && e->waker_pid == (uint32_t)t->jvm.pid
		       ? stream_thread_name(t->stream, e->waker_own_tid)
		       : "";
}

static void offcpu_deliver(struct host *h, struct target *t, const struct offcpu_event *e)
{
	struct host_entry *entry = t->userdata;

	offcpu_to_profile(h, entry, t, e);
	host_ledgers_event(entry, e);
	host_moment_offcpu(entry, t, e);
	for (struct host_listener *l = h->listeners, *next; l; l = next) {
		next = l->next;
		if (l->on_offcpu)
			l->on_offcpu(l->userdata, t, e,
				     e->end_ns + (uint64_t)t->real_minus_mono_ns);
	}
}

static void offcpu_on_event(void *userdata, const struct offcpu_event *joined)
{
	struct target *t = userdata;
	struct host *h = targets_userdata(t);
	struct host_entry *entry = t->userdata;
	uint64_t min_ns = h->config->offcpu_min_ns;
	struct offcpu_event e = *joined, quota;
	struct stream_lock lock;
	bool is_split;

	e.thread = stream_thread_name(t->stream, e.tid);
	e.virtual_thread = stream_thread_name(t->stream, e.virtual_tid);
	e.waker = offcpu_waker(t, &e);
	/* the agent's own thread waits for samples; it gets no signals */
	e.idle |= !e.has_stack && strcmp(e.thread, AGENT_THREAD) == 0;
	e.tid = host_number_of(entry, e.tid);
	offcpu_spare(h, t, &e);
	if (e.lock) {
		lock = *e.lock;
		lock.thread = stream_thread_name(t->stream, lock.tid);
		lock.owner = stream_thread_name(t->stream, lock.owner_tid);
		lock.tid = host_number_of(entry, lock.tid);
		lock.owner_tid = host_number_of(entry, lock.owner_tid);
		e.lock = &lock;
	}
	is_split = offcpu_event_split_quota(&e, min_ns, &quota);
	if (!is_split || e.duration_ns >= min_ns) /* shorter ones are no events */
		offcpu_deliver(h, t, &e);
	if (is_split)
		offcpu_deliver(h, t, &quota);
}

/* ---- engine, target -> join -------------------------------------------------------------------
 */

/* NULL = the target has no session, or no memory. */
static struct offcpu_join *offcpu_join_of(struct host *h, struct target *t)
{
	struct host_entry *e = t->stream ? host_entry_of(h, t) : NULL;

	if (e && !e->offcpu)
		(void)offcpu_join_new(offcpu_explain, offcpu_on_event, t, &e->offcpu);
	return e ? e->offcpu : NULL;
}

/* The target of a process. Records come in groups, so the last one is tried first. */
static struct target *offcpu_target(struct host *h, pid_t pid)
{
	struct target *t = h->offcpu_last;

	if (!t || t->jvm.pid != pid || t->state != TARGET_STREAMING)
		for (t = targets_next(h->targets, NULL);
		     t && (t->jvm.pid != pid || t->state != TARGET_STREAMING);
		     t = targets_next(h->targets, t))
			;
	h->offcpu_last = t;
	return t;
}

static void offcpu_from_kernel(void *userdata, const struct offcpu_interval *i, const uint64_t *ips,
			       unsigned n)
{
	struct host *h = userdata;
	struct target *t = offcpu_target(h, i->pid);
	struct offcpu_join *join = t ? offcpu_join_of(h, t) : NULL;
	const struct offcpu_kernel k = {
		.end_ns = i->end_ns,
		.duration_ns = i->duration_ns,
		.runqueue_ns = i->runqueue_ns,
		.throttled_ns = i->throttled_ns,
		.stay_ns = i->stay_ns,
		.tid = i->tid,
		.waker_pid = i->waker_pid,
		.waker_tid = i->waker_tid,
		.waker_own_tid = i->waker_own_tid,
		.syscall_nr = i->syscall_nr,
		.kernel_class = i->class,
		.signalled = i->flags & OFFCPU_SIGNALLED,
	};

	if (join)
		offcpu_join_kernel(join, &k, ips, n, clock_mono_ns());
}

void host_offcpu_before_message(struct host *h)
{
	if (h->offcpu)
		offcpu_engine_drain(h->offcpu);
}

void host_offcpu_agent(struct target *t, const struct stream_offcpu *o)
{
	struct offcpu_join *join = offcpu_join_of(targets_userdata(t), t);

	if (join)
		offcpu_join_agent(join, o, clock_mono_ns());
}

void host_offcpu_lock(struct target *t, const struct stream_lock *w, bool idle)
{
	const struct host_entry *e = t->userdata;
	struct host *h = targets_userdata(t);

	uint64_t end_ns = w->begin_ns + w->duration_ns;
	enum offcpu_usual usual;

	/* only for targets whose times off the CPU are collected, or whose agents say so */
	if (!e || !e->offcpu)
		return;
	usual = offcpu_join_lock(e->offcpu, w, idle, t->offcpu_spared_ns, t->offcpu_loses);
	if (!h->offcpu)
		return;
	if (usual == OFFCPU_USUAL_WORK)
		offcpu_engine_waits_for_work(h->offcpu, t->jvm.pid, host_number_of(e, w->tid),
					     end_ns);
	else if (usual == OFFCPU_USUAL_TOLD)
		offcpu_engine_told_habit(h->offcpu, t->jvm.pid, host_number_of(e, w->tid), end_ns);
}

void host_offcpu_reset(struct target *t)
{
	struct host_entry *e = t->userdata;

	if (e && e->offcpu)
		offcpu_join_reset(e->offcpu);
}

void host_offcpu_end(struct target *t)
{
	struct host_entry *e = t->userdata;

	if (!e || !e->offcpu)
		return;
	if (t->stream)
		offcpu_join_flush(e->offcpu);
	e->offcpu = offcpu_join_free(e->offcpu);
}

static void offcpu_on_ring(void *userdata, uint32_t events)
{
	struct host *h = userdata;

	(void)events;
	offcpu_engine_drain(h->offcpu);
}

static void offcpu_on_turn(void *userdata)
{
	struct host *h = userdata;
	uint64_t now_ns = clock_mono_ns();

	offcpu_engine_drain(h->offcpu);
	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct host_entry *e = t->userdata;

		if (e && e->offcpu && t->stream)
			offcpu_join_expire(e->offcpu, now_ns);
	}
}

/* ---- life cycle -------------------------------------------------------------------------------
 */

int host_offcpu_open(struct host *h)
{
	int fd, r;

	h->offcpu = host_sampling_offcpu(h->sampling, &h->offcpu_why);
	if (!h->offcpu) {
		targets_no_offcpu(h->targets);
		return 0;
	}
	h->offcpu_why = "";
	if (offcpu_engine_way(h->offcpu) == OFFCPU_BY_OWN_SIGNAL)
		targets_own_signal(h->targets);
	offcpu_engine_listen(h->offcpu, offcpu_from_kernel, host_ledgers_on_end, h);
	fd = offcpu_engine_fd(h->offcpu);
	r = fd >= 0 ? loop_add(h->loop, fd, EPOLLIN, offcpu_on_ring, h, &h->offcpu_source) : 0;
	if (r < 0)
		return r;
	return loop_timer_add(h->loop, TURN_NS, TURN_NS, offcpu_on_turn, h, &h->offcpu_timer);
}

void host_offcpu_close(struct host *h)
{
	if (h->offcpu)
		offcpu_engine_listen(h->offcpu, NULL, NULL, NULL);
	h->offcpu_source = loop_source_free(h->offcpu_source);
	h->offcpu_timer = loop_timer_free(h->offcpu_timer);
}

void host_offcpu_counts(const struct target *t, struct offcpu_join_counts *ret)
{
	const struct host_entry *e = t->userdata;

	if (e && e->offcpu)
		offcpu_join_counts(e->offcpu, ret);
	else
		*ret = (struct offcpu_join_counts){ 0 };
}

const struct offcpu_engine *host_offcpu_engine(const struct host *h)
{
	return h->offcpu;
}

const char *host_offcpu_why(struct host *h)
{
	return h->offcpu_why;
}

const char *host_kernel_name(struct host *h, uint64_t address)
{
	struct kernel_frames *names = host_sampling_names(h->sampling);
	struct live_kernel kernel;

	if (!names)
		return NULL;
	kernel = kernel_frames_of(names, NULL);
	return kernel.name(kernel.userdata, address);
}
