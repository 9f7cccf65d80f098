/* See offcpu_join.h. Each waiting interval is in two lists: of all by age, and of its thread's
 * bucket. The waits for locks that still go on are in buckets of their own. */
#include "daemon/host/offcpu_join.h"

#include <errno.h>
#include <string.h>
#include "daemon/host/offcpu_habits.h"
#include "proto/host_cookie.h"

#define BUCKETS 512u
#define LATE_NS 3000000000ull /* for this time a late record of the agent is recognised as such */
#define OPENS_MAX 1024u /* waits that still go on */
#define OPEN_BUCKETS 64u
#define LOCK_SLACK_NS \
	2000000ull /* the wait of a lock begins before the switch, and ends after it */

enum join_state {
	JOIN_FOR_AGENT, /* waits for the agent's record */
	JOIN_FOR_LOCK, /* waits for a lock's record, or a safepoint's, which may not come */
	JOIN_PASSED_ON, /* passed on without the agent's record, which must not count again */
};

struct join_item {
	struct join_item *older, *newer; /* in the order of age */
	struct join_item *left, *right; /* in its bucket: the newer one, the older one */
	enum join_state state;
	uint64_t deadline_ns, stay_ns;
	struct offcpu_event e; /* its trace and ips point to the fields below */
	struct stream_context trace;
	char *trace_text; /* owned: the trace's id and the span's */
	uint64_t ips[];
};

/* A wait for a lock that still goes on. A monitor is entered in several steps, each of which is an
 * interval: those that end long before the wait does have nothing else that tells of the lock. */
struct join_open {
	struct join_open *next; /* in its bucket */
	struct stream_lock w; /* without the names of threads and the trace, which may change */
	bool idle; /* it is a wait for work */
};

struct offcpu_join {
	offcpu_explain_fn *explain;
	offcpu_join_fn *emit;
	void *userdata;
	struct join_item *oldest, *newest;
	struct join_item *buckets[BUCKETS];
	unsigned n;
	size_t bytes; /* of all items */
	struct offcpu_habits habits;
	struct join_open *opens[OPEN_BUCKETS];
	unsigned n_opens;
	struct offcpu_join_counts counts;
};

int offcpu_join_new(offcpu_explain_fn *explain, offcpu_join_fn *emit, void *userdata,
		    struct offcpu_join **ret)
{
	struct offcpu_join *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->explain = explain;
	j->emit = emit;
	j->userdata = userdata;
	*ret = j;
	return 0;
}

/* ---- the lists ------------------------------------------------------------------------------ */

static struct join_item **join_bucket(struct offcpu_join *j, uint32_t tid)
{
	return &j->buckets[tid * 2654435761u >> 23 & (BUCKETS - 1)];
}

static size_t join_item_bytes(const struct join_item *i)
{
	return sizeof(*i) + i->e.n_ips * sizeof(i->ips[0]);
}

static struct join_item *join_item_new(const struct offcpu_event *e, const uint64_t *ips,
				       unsigned n)
{
	struct join_item *i;

	if (n > OFFCPU_STACK_MAX)
		n = OFFCPU_STACK_MAX;
	i = calloc(1, sizeof(*i) + n * sizeof(i->ips[0]));
	if (!i)
		return NULL;
	i->e = *e;
	if (n)
		memcpy(i->ips, ips, n * sizeof(i->ips[0]));
	i->e.ips = i->ips;
	i->e.n_ips = n;
	return i;
}

static void join_item_free(struct join_item *i)
{
	free(i->trace_text);
	free(i);
}

static void join_add(struct offcpu_join *j, struct join_item *i)
{
	struct join_item **bucket = join_bucket(j, i->e.tid);

	i->older = j->newest;
	if (j->newest)
		j->newest->newer = i;
	else
		j->oldest = i;
	j->newest = i;
	i->right = *bucket;
	if (*bucket)
		(*bucket)->left = i;
	*bucket = i;
	j->n++;
	j->bytes += join_item_bytes(i);
}

static void join_remove(struct offcpu_join *j, struct join_item *i)
{
	*(i->older ? &i->older->newer : &j->oldest) = i->newer;
	*(i->newer ? &i->newer->older : &j->newest) = i->older;
	*(i->left ? &i->left->right : join_bucket(j, i->e.tid)) = i->right;
	if (i->right)
		i->right->left = i->left;
	j->n--;
	j->bytes -= join_item_bytes(i);
}

/* ---- waits that go on ------------------------------------------------------------------------ */

/* The place of the open wait of this thread, or of NULL at the end of its bucket. */
static struct join_open **join_open_at(struct offcpu_join *j, uint32_t tid)
{
	struct join_open **at = &j->opens[tid % OPEN_BUCKETS];

	while (*at && (*at)->w.tid != tid)
		at = &(*at)->next;
	return at;
}

static void join_open_end(struct offcpu_join *j, uint32_t tid)
{
	struct join_open **at = join_open_at(j, tid), *o = *at;

	if (!o)
		return;
	*at = o->next;
	free(o);
	j->n_opens--;
}

static void join_open_begin(struct offcpu_join *j, const struct stream_lock *w, bool idle)
{
	struct join_open **at = join_open_at(j, w->tid);

	if (!*at && j->n_opens < OPENS_MAX) {
		*at = calloc(1, sizeof(**at));
		j->n_opens += *at != NULL;
	}
	if (!*at)
		return;
	(*at)->w = *w;
	(*at)->w.thread = (*at)->w.owner = "";
	(*at)->w.trace = NULL;
	(*at)->idle = idle;
}

static void join_open_end_all(struct offcpu_join *j)
{
	for (unsigned b = 0; b < OPEN_BUCKETS; b++)
		while (j->opens[b])
			join_open_end(j, j->opens[b]->w.tid);
}

/* ---- passing on ----------------------------------------------------------------------------- */

static void join_emit_event(struct offcpu_join *j, struct offcpu_event *e)
{
	offcpu_habits_apply(&j->habits, e);
	if (e->kernel_class == OFFCPU_NO_CLASS)
		j->counts.no_kernel += e->has_stack;
	else if (e->has_stack)
		j->counts.joined++;
	else
		j->counts.no_java_stack++;
	j->counts.locks += e->lock != NULL;
	j->emit(j->userdata, e);
}

static void join_emit(struct offcpu_join *j, struct join_item *i)
{
	join_remove(j, i);
	if (i->e.unsettled)
		j->explain(j->userdata, &i->e);
	if (i->state != JOIN_PASSED_ON)
		join_emit_event(j, &i->e);
	join_item_free(i);
}

struct offcpu_join *offcpu_join_free(struct offcpu_join *j)
{
	struct join_item *next;

	if (!j)
		return NULL;
	for (struct join_item *i = j->oldest; i; i = next) {
		next = i->newer;
		join_item_free(i);
	}
	join_open_end_all(j);
	offcpu_habits_clear(&j->habits);
	free(j);
	return NULL;
}

/* A park, whatever it is for: the agent reports it as a wait. */
static bool join_parks(const struct offcpu_event *e)
{
	return e->reason == OFFCPU_REASON_PARK || e->status == WIRE_OFFCPU_PARK;
}

/* Can the record of a lock, or of a safepoint, follow? Not a lock's for waits for work, which are
 * reported only in sums. */
static bool join_expects_more(const struct offcpu_event *e)
{
	return e->unsettled ||
	       (!e->idle && (e->reason == OFFCPU_REASON_LOCK || join_parks(e) ||
			     e->reason == OFFCPU_REASON_WAIT));
}

static void join_hurry(struct offcpu_join *j)
{
	while (j->n >= OFFCPU_JOIN_MAX) {
		j->counts.hurried += j->oldest->state != JOIN_PASSED_ON;
		join_emit(j, j->oldest);
	}
}

/* ---- the kernel's --------------------------------------------------------------------------- */

void offcpu_join_kernel(struct offcpu_join *j, const struct offcpu_kernel *k, const uint64_t *ips,
			unsigned n, uint64_t now_ns)
{
	struct offcpu_event e = {
		.end_ns = k->end_ns,
		.duration_ns = k->duration_ns,
		.runqueue_ns = k->runqueue_ns,
		.throttled_ns = k->throttled_ns,
		.tid = k->tid,
		.kernel_class = k->kernel_class,
		.syscall_nr = k->syscall_nr,
		.waker_pid = k->waker_pid,
		.waker_tid = k->waker_tid,
		.waker_own_tid = k->waker_own_tid,
		.ips = ips,
		.n_ips = n < OFFCPU_STACK_MAX ? n : OFFCPU_STACK_MAX,
	};
	struct join_item *i;

	offcpu_habits_recorded(&j->habits, k->tid, k->kernel_class, k->end_ns);
	j->explain(j->userdata, &e);
	/* over its budget the engine sends no signal; but a futex may be a lock's, and the
	 * lock's record has the stack */
	if (!k->signalled && k->kernel_class != OFFCPU_FUTEX) {
		join_emit_event(j, &e);
		return;
	}
	join_hurry(j);
	i = join_item_new(&e, ips, n);
	if (!i) {
		join_emit_event(j, &e);
		return;
	}
	i->stay_ns = k->stay_ns;
	i->state = k->signalled ? JOIN_FOR_AGENT : JOIN_FOR_LOCK;
	i->deadline_ns = now_ns + (k->signalled ? OFFCPU_JOIN_AGENT_NS : OFFCPU_JOIN_LOCK_NS);
	join_add(j, i);
}

/* ---- the agent's ---------------------------------------------------------------------------- */

static void join_take_agents(struct offcpu_event *e, const struct stream_offcpu *o)
{
	e->virtual_tid = o->virtual_tid;
	e->status = o->status;
	e->node = o->node;
	e->has_stack = true;
	e->trace = o->trace;
}

/* Copies the texts of a trace, which the stream will replace. */
static void join_keep_trace(struct join_item *i)
{
	size_t trace_len, span_len;

	if (!i->e.trace)
		return;
	trace_len = strlen(i->e.trace->trace_id) + 1;
	span_len = strlen(i->e.trace->span_id) + 1;
	i->trace_text = malloc(trace_len + span_len);
	if (i->trace_text) {
		memcpy(i->trace_text, i->e.trace->trace_id, trace_len);
		memcpy(i->trace_text + trace_len, i->e.trace->span_id, span_len);
		i->trace = (struct stream_context){ i->trace_text, i->trace_text + trace_len };
	}
	i->e.trace = i->trace_text ? &i->trace : NULL;
}

/* Nobody woke the thread while it entered a monitor: it looks every now and then by itself, so its
 * wait most likely goes on, and the agent reports it when it is over or has become long. */
static bool join_enters_further(const struct offcpu_event *e)
{
	return e->status == WIRE_OFFCPU_LOCK && e->reason == OFFCPU_REASON_LOCK && !e->waker_tid;
}

static void join_wait_for_lock(struct join_item *i, uint64_t now_ns)
{
	join_keep_trace(i);
	i->state = JOIN_FOR_LOCK;
	i->deadline_ns =
		now_ns + (join_enters_further(&i->e) ? OFFCPU_JOIN_ENTRY_NS : OFFCPU_JOIN_LOCK_NS);
}

/* An interval of which only the agent has a record. */
static struct offcpu_event join_agents_own(struct offcpu_join *j, const struct stream_offcpu *o)
{
	struct offcpu_event e = {
		.end_ns = o->mono_ns,
		.duration_ns = o->duration_ns,
		.tid = o->tid,
		.kernel_class = OFFCPU_NO_CLASS,
		.syscall_nr = -1,
	};

	join_take_agents(&e, o);
	j->explain(j->userdata, &e);
	return e;
}

static void join_with_agent(struct offcpu_join *j, struct join_item *i,
			    const struct stream_offcpu *o, uint64_t now_ns)
{
	join_take_agents(&i->e, o);
	j->explain(j->userdata, &i->e);
	if (!join_expects_more(&i->e)) {
		join_emit(j, i);
		return;
	}
	join_wait_for_lock(i, now_ns);
}

static void join_alone(struct offcpu_join *j, const struct stream_offcpu *o, uint64_t now_ns)
{
	struct offcpu_event e = join_agents_own(j, o);
	struct join_item *i = NULL;

	if (join_expects_more(&e)) {
		join_hurry(j);
		i = join_item_new(&e, NULL, 0);
	}
	if (!i) {
		join_emit_event(j, &e);
		return;
	}
	join_wait_for_lock(i, now_ns);
	join_add(j, i);
}

/* A virtual thread that had no carrier: no other record belongs to it. */
static void join_unmounted(struct offcpu_join *j, const struct stream_offcpu *o)
{
	struct offcpu_event e = join_agents_own(j, o);
	const struct stream_lock lock = {
		.begin_ns = o->mono_ns > o->duration_ns ? o->mono_ns - o->duration_ns : 0,
		.duration_ns = o->duration_ns,
		.tid = o->tid,
		.thread = o->thread,
		.owner = "",
		.wait = WIRE_WAIT_PARK,
		.class_name = o->class_name,
		.identity = o->identity,
		.node = e.node,
		.waits = 1,
	};

	if (o->class_name && o->class_name[0] && e.reason == OFFCPU_REASON_PARK)
		e.lock = &lock;
	j->counts.unmounted++;
	j->emit(j->userdata, &e);
}

static bool join_is_agents(const struct join_item *i, uint32_t tid)
{
	return i->e.tid == tid && i->state != JOIN_FOR_LOCK;
}

/* Is it the interval that the agent reports? Where the kernel cannot tell the agent its duration,
 * it is the last one that had begun then: any later one begins after the report. */
static bool join_is_reported(const struct join_item *i, const struct stream_offcpu *o)
{
	if (!join_is_agents(i, o->tid))
		return false;
	if (o->duration_ns == HOST_COOKIE_OFFCPU_UNKNOWN_NS)
		return i->e.end_ns - i->e.duration_ns < o->mono_ns;
	return i->e.duration_ns == o->duration_ns;
}

void offcpu_join_agent(struct offcpu_join *j, const struct stream_offcpu *o, uint64_t now_ns)
{
	struct join_item *found = *join_bucket(j, o->tid), *next;
	uint64_t stay_ns;

	if (o->status == WIRE_OFFCPU_UNMOUNTED) {
		join_unmounted(j, o);
		return;
	}
	while (found && !join_is_reported(found, o))
		found = found->right;
	if (!found) {
		/* nobody knows how long an interval without a record and a duration was */
		if (o->duration_ns == HOST_COOKIE_OFFCPU_UNKNOWN_NS)
			j->counts.no_kernel++;
		else
			join_alone(j, o, now_ns);
		return;
	}
	/* other intervals of the same stay in the kernel, before and after, have no record of their
	 * own: a signal that is pending stays the only one */
	stay_ns = found->stay_ns;
	for (struct join_item *i = *join_bucket(j, o->tid); i; i = next) {
		next = i->right;
		if (i != found && !(stay_ns && i->stay_ns == stay_ns && join_is_agents(i, o->tid)))
			continue;
		if (i->state == JOIN_FOR_AGENT) {
			join_with_agent(j, i, o, now_ns);
		} else {
			j->counts.late++;
			join_emit(j, i);
		}
	}
}

/* ---- the lock's ----------------------------------------------------------------------------- */

static enum offcpu_reason join_reason_of(const struct stream_lock *w)
{
	if (w->wait == WIRE_WAIT_PARK)
		return OFFCPU_REASON_PARK;
	return w->wait == WIRE_WAIT_WAIT ? OFFCPU_REASON_WAIT : OFFCPU_REASON_LOCK;
}

/* Is the interval that wait, or a part of it? A thread may enter a monitor in several steps. */
static bool join_is_locks(const struct join_item *i, const struct stream_lock *w)
{
	uint64_t begin_ns = i->e.end_ns - i->e.duration_ns, end_ns = i->e.end_ns;
	uint64_t both_begin_ns = begin_ns > w->begin_ns ? begin_ns : w->begin_ns;
	uint64_t w_end_ns = w->begin_ns + w->duration_ns;
	uint64_t both_end_ns = end_ns < w_end_ns ? end_ns : w_end_ns;

	if (i->state != JOIN_FOR_LOCK || begin_ns >= end_ns || both_begin_ns >= both_end_ns)
		return false;
	/* the JVM's status contradicts this wait */
	if (i->e.status > WIRE_OFFCPU_RUNNABLE && i->e.reason != join_reason_of(w) &&
	    !(w->wait == WIRE_WAIT_PARK && join_parks(&i->e)))
		return false;
	return begin_ns + LOCK_SLACK_NS >= w->begin_ns && end_ns <= w_end_ns + LOCK_SLACK_NS &&
	       both_end_ns - both_begin_ns >= i->e.duration_ns / 2;
}

static void join_with_lock(struct offcpu_join *j, struct join_item *i, const struct stream_lock *w,
			   bool idle)
{
	struct offcpu_event *e = &i->e;
	bool held;

	if (e->unsettled)
		j->explain(j->userdata, e);
	e->lock = w;
	e->unsettled = false;
	/* the interval's own reason is more specific: a safepoint held the thread when its wait was
	 * over */
	held = e->reason == OFFCPU_REASON_GC || e->reason == OFFCPU_REASON_SAFEPOINT;
	if (!held && (w->wait != WIRE_WAIT_PARK || !join_parks(e)))
		e->reason = join_reason_of(w);
	if (!e->has_stack && w->node) { /* the agent did not report the interval, but its wait */
		e->node = w->node;
		e->has_stack = true;
		e->trace = w->trace;
		e->idle = idle && !held;
	}
	join_emit(j, i);
}

/* Makes an event of the lock's record alone: for a virtual thread that waited unmounted, so that no
 * platform thread was off the CPU, or whose carrier was and had no signal; and for a thread whose
 * record the kernel spared. */
static void join_lock_alone(struct offcpu_join *j, const struct stream_lock *w, bool idle)
{
	static const uint8_t statuses[WIRE_WAIT_COUNT] = {
		[WIRE_WAIT_ENTER] = WIRE_OFFCPU_LOCK,
		[WIRE_WAIT_WAIT] = WIRE_OFFCPU_WAIT,
		[WIRE_WAIT_PARK] = WIRE_OFFCPU_PARK,
	};
	struct offcpu_event e = {
		.end_ns = w->begin_ns + w->duration_ns,
		.duration_ns = w->duration_ns,
		.tid = w->tid,
		.virtual_tid = w->tid < WIRE_VIRTUAL_TID ? 0 : w->tid,
		.kernel_class = OFFCPU_NO_CLASS,
		.status = statuses[w->wait],
		.has_stack = w->node || w->tid >= WIRE_VIRTUAL_TID,
		.syscall_nr = -1,
		.node = w->node,
		.lock = w,
		.trace = w->trace,
	};

	j->explain(j->userdata, &e);
	e.idle = idle;
	j->counts.locks++;
	j->counts.lock_only++;
	j->emit(j->userdata, &e);
}

/* Joins the wait of a virtual thread: its carrier is unknown, so all waiting intervals are
 * searched. */
static bool join_lock_virtual(struct offcpu_join *j, const struct stream_lock *w, bool idle)
{
	struct join_item *older;
	bool found = false;

	for (struct join_item *i = j->newest; i; i = older) {
		older = i->older;
		if (i->e.virtual_tid == w->tid && join_is_locks(i, w)) {
			join_with_lock(j, i, w, idle);
			found = true;
		}
	}
	return found;
}

/* Joins the waiting intervals of a platform thread that are that wait, or parts of it. */
static bool join_lock_platform(struct offcpu_join *j, const struct stream_lock *w, bool idle)
{
	struct join_item *next;
	bool found = false;

	for (struct join_item *i = *join_bucket(j, w->tid); i; i = next) {
		next = i->right;
		if (i->e.tid != w->tid || !join_is_locks(i, w))
			continue;
		join_with_lock(j, i, w, idle);
		found = true;
	}
	return found;
}

/* Passes an interval on with the lock, if it is a part of a wait that still goes on. */
static bool join_with_open(struct offcpu_join *j, struct join_item *i)
{
	uint32_t tid = i->e.virtual_tid ? i->e.virtual_tid : i->e.tid;
	const struct join_open *o = *join_open_at(j, tid);
	struct stream_lock so_far;

	if (!o || i->e.end_ns <= o->w.begin_ns)
		return false;
	so_far = o->w;
	so_far.duration_ns = i->e.end_ns - so_far.begin_ns;
	if (!join_is_locks(i, &so_far))
		return false;
	join_with_lock(j, i, &so_far, o->idle);
	return true;
}

/* A wait goes on, or its end got lost. Returns false if it is over. */
static bool join_lock_open(struct offcpu_join *j, const struct stream_lock *w, bool idle)
{
	if (w->flags & WIRE_LOCK_OPEN) {
		join_open_begin(j, w, idle);
		if (w->tid < WIRE_VIRTUAL_TID)
			(void)join_lock_platform(j, w, idle);
		else
			(void)join_lock_virtual(j, w, idle);
		return true;
	}
	if (!(w->flags & WIRE_LOCK_SUM))
		join_open_end(j, w->tid);
	return w->flags & WIRE_LOCK_CLOSED;
}

/* Did the kernel spare the record of this wait? One that has a record of another time off the CPU
 * in it is told of by that. */
static bool join_is_spared(const struct offcpu_join *j, const struct stream_lock *w,
			   uint64_t spared_ns, bool loses)
{
	return spared_ns && w->duration_ns >= spared_ns &&
	       offcpu_habits_spare(&j->habits, w->tid, w->begin_ns, w->begin_ns + w->duration_ns,
				   !loses);
}

/* Joins the wait of a platform thread, or makes it an event by itself. */
static enum offcpu_usual join_lock_of_thread(struct offcpu_join *j, const struct stream_lock *w,
					     bool idle, uint64_t spared_ns, bool loses)
{
	bool found = join_lock_platform(j, w, idle);

	if (idle)
		return OFFCPU_USUAL_NONE;
	if (!found && !join_is_spared(j, w, spared_ns, loses))
		return OFFCPU_USUAL_NONE;
	if (!found)
		join_lock_alone(j, w, idle);
	return offcpu_habits_told(&j->habits, w->tid, w->begin_ns + w->duration_ns)
		       ? OFFCPU_USUAL_TOLD
		       : OFFCPU_USUAL_NONE;
}

enum offcpu_usual offcpu_join_lock(struct offcpu_join *j, const struct stream_lock *w, bool idle,
				   uint64_t spared_ns, bool loses)
{
	bool is_platform = w->tid < WIRE_VIRTUAL_TID;

	if (w->flags & WIRE_LOCK_SUM && idle && w->wait < WIRE_WAIT_COUNT && is_platform &&
	    offcpu_habits_work(&j->habits, w->tid, w->begin_ns + w->duration_ns, join_reason_of(w),
			       w->waits))
		return OFFCPU_USUAL_WORK;
	if (w->wait >= WIRE_WAIT_COUNT || join_lock_open(j, w, idle) || w->flags & WIRE_LOCK_SUM)
		return OFFCPU_USUAL_NONE;
	if (is_platform)
		return join_lock_of_thread(j, w, idle, spared_ns, loses);
	if (!join_lock_virtual(j, w, idle))
		join_lock_alone(j, w, idle);
	return OFFCPU_USUAL_NONE;
}

/* ---- time ----------------------------------------------------------------------------------- */

void offcpu_join_expire(struct offcpu_join *j, uint64_t now_ns)
{
	struct join_item *next;

	for (struct join_item *i = j->oldest; i; i = next) {
		next = i->newer;
		if (i->deadline_ns > now_ns)
			continue;
		if (join_with_open(j, i))
			continue;
		if (i->state != JOIN_FOR_AGENT) {
			join_emit(j, i);
			continue;
		}
		join_emit_event(j, &i->e);
		i->state = JOIN_PASSED_ON;
		i->deadline_ns = now_ns + LATE_NS;
	}
}

void offcpu_join_reset(struct offcpu_join *j)
{
	struct join_item *next;

	for (struct join_item *i = j->oldest; i; i = next) {
		next = i->newer;
		if (i->e.has_stack && !join_with_open(j, i))
			join_emit(j, i);
	}
	join_open_end_all(j); /* their classes and stacks get new meanings, too */
}

void offcpu_join_flush(struct offcpu_join *j)
{
	while (j->oldest)
		if (!join_with_open(j, j->oldest))
			join_emit(j, j->oldest);
	join_open_end_all(j);
}

void offcpu_join_counts(const struct offcpu_join *j, struct offcpu_join_counts *ret)
{
	*ret = j->counts;
	ret->by_habit = j->habits.told;
	ret->habit_right = j->habits.right;
	ret->habit_wrong = j->habits.wrong;
}

size_t offcpu_join_bytes(const struct offcpu_join *j)
{
	return sizeof(*j) + j->bytes + j->n_opens * sizeof(struct join_open) +
	       offcpu_habits_bytes(&j->habits);
}
