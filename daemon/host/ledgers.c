/* See ledgers.h. */
#include "daemon/host/ledgers.h"

#include <string.h>
#include "daemon/ground/clock.h"

/* Between two readings of the kernel's times; requests in between get the last one. */
#define LEAST_NS (50 * NS_PER_MS)

_Static_assert((int)TIME_LEDGER_REASONS > (int)OFFCPU_REASON_COUNT, "each has a place, and idle");

/* The reason of each of the kernel's classes, unless an event gives a better one. A futex may
 * serve any wait. */
static const uint8_t reasons[OFFCPU_CLASS_COUNT] = {
	[OFFCPU_FUTEX] = OFFCPU_REASON_OTHER,	[OFFCPU_SLEEP] = OFFCPU_REASON_SLEEP,
	[OFFCPU_POLL] = OFFCPU_REASON_POLL,	[OFFCPU_SOCKET] = OFFCPU_REASON_SOCKET,
	[OFFCPU_ACCEPT] = OFFCPU_REASON_ACCEPT, [OFFCPU_CONNECT] = OFFCPU_REASON_CONNECT,
	[OFFCPU_FILE] = OFFCPU_REASON_FILE,	[OFFCPU_FSYNC] = OFFCPU_REASON_FSYNC,
	[OFFCPU_PIPE] = OFFCPU_REASON_PIPE,	[OFFCPU_FAULT] = OFFCPU_REASON_FAULT,
	[OFFCPU_DISK] = OFFCPU_REASON_DISK,	[OFFCPU_THROTTLED] = OFFCPU_REASON_THROTTLED,
	[OFFCPU_OTHER] = OFFCPU_REASON_OTHER,	[OFFCPU_RUNQUEUE] = OFFCPU_REASON_RUNQUEUE,
};

static const uint8_t reason_of_wait[WIRE_WAIT_COUNT] = {
	[WIRE_WAIT_ENTER] = OFFCPU_REASON_LOCK,
	[WIRE_WAIT_WAIT] = OFFCPU_REASON_WAIT,
	[WIRE_WAIT_PARK] = OFFCPU_REASON_PARK,
};

/* The targets that stream, sorted by pid. */
struct booking {
	struct booking_target {
		pid_t pid;
		struct host_entry *entry;
	} targets[TARGETS_MAX + NAMED_MAX];
	size_t n;
};

static int ledgers_by_pid(const void *a, const void *b)
{
	const struct booking_target *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void ledgers_list(struct host *h, struct booking *b)
{
	b->n = 0;
	for (struct target *t = targets_next(h->targets, NULL); t && b->n < ARRAY_SIZE(b->targets);
	     t = targets_next(h->targets, t))
		if (t->state == TARGET_STREAMING && t->userdata)
			b->targets[b->n++] = (struct booking_target){ t->jvm.pid, t->userdata };
	qsort(b->targets, b->n, sizeof(*b->targets), ledgers_by_pid);
}

static void ledgers_put(struct host_entry *e, const struct offcpu_times *times)
{
	struct time_totals t = {
		.tid = times->host_tid,
		.ended = times->ended,
		.from_ns = times->from_ns,
		.to_ns = times->to_ns,
		.cpu_ns = times->oncpu_ns,
		.runqueue_ns = times->runqueue_ns,
		.off_since_ns = times->runs ? 0 : times->since_ns,
		.off_reason = reasons[times->class],
		.off_syscall = times->syscall_nr,
	};

	for (int c = 0; c < OFFCPU_CLASS_COUNT; c++)
		t.off_ns[reasons[c]] += times->off_ns[c];
	if (!e->ledger)
		(void)time_ledger_new(&e->ledger);
	if (e->ledger)
		time_ledger_totals(e->ledger, &t);
}

static void ledgers_on_times(void *userdata, const struct offcpu_times *times)
{
	const struct booking_target key = { .pid = times->pid };
	const struct booking *b = userdata;
	const struct booking_target *found =
		bsearch(&key, b->targets, b->n, sizeof(*b->targets), ledgers_by_pid);

	if (!found)
		return;
	ledgers_put(found->entry, times);
	found->entry->halt.threads++;
	found->entry->halt.halted += times->halted;
	if (times->halted && times->since_ns > found->entry->halt.since_ns)
		found->entry->halt.since_ns = times->since_ns;
}

uint64_t host_halted_ns(const struct target *t)
{
	const struct host_entry *e = t->userdata;
	uint64_t now_ns = clock_mono_ns();

	if (!e || t->state != TARGET_STREAMING || now_ns - e->halt.at_ns > TIME_LEDGER_STALE_NS ||
	    !e->halt.halted || e->halt.halted < e->halt.threads)
		return 0;
	return now_ns > e->halt.since_ns ? now_ns - e->halt.since_ns : 0;
}

void host_take_times(struct host *h)
{
	static struct booking booking;
	const char *why;
	const struct offcpu_engine *engine = host_sampling_offcpu(h->sampling, &why);
	uint64_t now_ns = clock_mono_ns();

	if (!engine || now_ns - h->times_ns < LEAST_NS)
		return;
	h->times_ns = now_ns;
	ledgers_list(h, &booking);
	for (size_t i = 0; i < booking.n; i++)
		booking.targets[i].entry->halt = (struct host_halt){ .at_ns = now_ns };
	if (booking.n)
		(void)offcpu_engine_threads(engine, 0, ledgers_on_times, &booking);
}

void host_ledgers_on_end(void *userdata, const struct offcpu_times *times)
{
	struct host *h = userdata;

	for (struct target *t = targets_next(h->targets, NULL); t; t = targets_next(h->targets, t))
		if (t->jvm.pid == times->pid && t->state == TARGET_STREAMING && t->userdata) {
			ledgers_put(t->userdata, times);
			return;
		}
}

void host_ledgers_event(struct host_entry *e, const struct offcpu_event *event)
{
	struct time_reason r = {
		.tid = event->tid,
		.begin_ns = event->end_ns - event->duration_ns,
		.end_ns = event->end_ns - event->runqueue_ns,
		.reason = (uint8_t)event->reason,
	};

	if (event->kernel_class >= OFFCPU_CLASS_COUNT || event->duration_ns > event->end_ns)
		return;
	if (!e->ledger)
		(void)time_ledger_new(&e->ledger);
	if (!e->ledger)
		return;
	r.from = reasons[event->kernel_class];
	/* that a time is for no known reason is worth knowing, too */
	if (r.from != r.reason || r.reason == OFFCPU_REASON_OTHER)
		time_ledger_reason(e->ledger, &r);
}

void host_ledgers_wait(const struct host_entry *e, const struct stream_lock *w)
{
	struct time_reason r = {
		.tid = w->tid,
		.begin_ns = w->begin_ns,
		.end_ns = w->begin_ns + w->duration_ns,
		.from = reasons[OFFCPU_FUTEX],
		.is_wait = true,
	};

	if (!e->ledger || w->tid >= WIRE_VIRTUAL_TID || w->wait >= WIRE_WAIT_COUNT ||
	    w->flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED) ||
	    w->duration_ns > UINT64_MAX - w->begin_ns)
		return;
	r.reason = reason_of_wait[w->wait];
	time_ledger_reason(e->ledger, &r);
}

/* A wait that went on when the thread was looked at; OTHER = none that is a futex for the kernel. */
static uint8_t ledgers_reason_of_status(uint8_t status)
{
	switch (status) {
	case WIRE_OFFCPU_SLEEP:
		return OFFCPU_REASON_SLEEP;
	case WIRE_OFFCPU_WAIT:
		return OFFCPU_REASON_WAIT;
	case WIRE_OFFCPU_PARK:
		return OFFCPU_REASON_PARK;
	case WIRE_OFFCPU_LOCK:
		return OFFCPU_REASON_LOCK;
	default:
		return OFFCPU_REASON_OTHER;
	}
}

void host_ledgers_state(struct host_entry *e, const struct wire_state *w)
{
	uint64_t span_ns = w->span_us * 1000ull;
	struct time_reason r = {
		.tid = w->tid,
		.begin_ns = w->mono_ns - span_ns,
		.end_ns = w->mono_ns,
		.from = reasons[OFFCPU_FUTEX],
		.is_wait = true,
	};

	if (w->tid >= WIRE_VIRTUAL_TID || w->mono_ns < span_ns)
		return;
	if (!e->ledger)
		(void)time_ledger_new(&e->ledger);
	if (!e->ledger)
		return;
	for (unsigned i = 0; i < WIRE_WAIT_COUNT; i++) {
		r.reason = reason_of_wait[i];
		r.part_ns = w->short_us[i] * 1000ull;
		if (r.part_ns)
			time_ledger_reason(e->ledger, &r);
	}
	time_ledger_seen(e->ledger,
			 &(struct time_seen){
				 .tid = w->tid,
				 .at_ns = w->mono_ns,
				 .from = r.from,
				 .reason = ledgers_reason_of_status(w->status),
				 .no_event = w->status == WIRE_OFFCPU_SLEEP,
			 });
}

const struct time_ledger *host_time_ledger(struct host *h, const struct target *t,
					   const char **ret_why)
{
	const struct host_entry *e = t->userdata;

	*ret_why = "";
	if (!host_sampling_offcpu(h->sampling, ret_why))
		return NULL;
	if (!(target_events(t) & 1u << WIRE_EVENT_OFFCPU))
		*ret_why = "times off the CPU are not collected in this JVM (events.offcpu)";
	else if (!e || !e->ledger)
		*ret_why =
			offcpu_engine_without_slot(h->offcpu, t->jvm.pid)
				? "the table for the threads of all JVMs has no room for its threads"
				: "the kernel has not counted for a second yet";
	else
		return e->ledger;
	return NULL;
}
