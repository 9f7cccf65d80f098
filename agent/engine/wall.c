/* See wall.h: the agent's thread polls threads and sends signals. */
#include "agent/engine/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/outlet.h"
#include "agent/base/producer.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/wall_blocked.h"
#include "agent/walker/walker.h"

#define INTERVAL_NS_MIN	   NS_PER_MS
#define INTERVAL_NS_MAX	   (10 * NS_PER_S)
#define SEARCH_NS	   NS_PER_S /* time between two searches for new threads */
#define UNDELIVERED_NS_MAX NS_PER_S /* undelivered time that is accounted for as "[no signal]" */
#define UNWRITTEN_MAX	   4u /* polls after which a sample not yet written is taken for dropped */
#define POLLS_AT_ONCE	   4u
#define GAP_NS_MAX	   (10 * NS_PER_MS)
#define THREADS_BYTES	   (WALL_THREADS_MAX * sizeof(struct wall_thread))

static struct {
	char wanted[WIRE_STRING_MAX]; /* part of a thread's name; "" = all threads */
	uint64_t interval_ns; /* asked for */
	uint64_t round_ns; /* length of this round, in which every thread is polled once */
	uint64_t begin_ns; /* begin of this round */
	uint64_t next_ns; /* time of the next poll */
	uint64_t search_ns; /* time of the next search for new threads */
	uint16_t order[WALL_THREADS_MAX]; /* indices into the table, shuffled */
	uint32_t n, at; /* length of order[]; index in it of the next thread to poll */
	uint32_t used; /* slots of the table that have ever been used */
	uint32_t left_out; /* threads for which the table had no room */
	uint64_t n_tasks; /* threads of the process at the last search */
	uint64_t random;
} round_;

static uint64_t wall_random_below(uint64_t n)
{
	uint64_t x = round_.random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	round_.random = x;
	return (x >> 11) % n;
}

/* ---- the table ---- */

static uint32_t wall_state_of(const struct wall_thread *t)
{
	return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
}

static void wall_set_state(struct wall_thread *t, enum wall_state state)
{
	__atomic_store_n(&t->state, state, __ATOMIC_RELEASE);
}

static bool wall_is_at(uint32_t slot, uint32_t tid)
{
	return slot < round_.used && wall_state_of(&wall.threads[slot]) != WALL_FREE &&
	       wall.threads[slot].tid == tid;
}

/* Passes list threads in a stable order, so the slot after the previous one is tried first. */
static struct wall_thread *wall_slot_of(uint32_t tid, struct wall_thread **ret_free)
{
	static uint32_t guess;

	*ret_free = NULL;
	if (wall_is_at(guess, tid))
		return &wall.threads[guess++];
	for (uint32_t i = 0; i < round_.used; i++) {
		struct wall_thread *t = &wall.threads[i];
		uint32_t state = wall_state_of(t);

		if (wall_is_at(i, tid)) {
			guess = i + 1;
			return t;
		}
		if (state == WALL_FREE && !*ret_free)
			*ret_free = t;
	}
	if (!*ret_free && round_.used < WALL_THREADS_MAX)
		*ret_free = &wall.threads[round_.used];
	return NULL;
}

static bool wall_is_wanted(const char *name)
{
	return !round_.wanted[0] || strstr(name, round_.wanted);
}

void wall_thread_seen(uint32_t tid, const char *name)
{
	struct wall_thread *t, *unused;

	if (!wall.on || tid == engine.agent_tid)
		return;
	t = wall_slot_of(tid, &unused);
	if (t && !wall_is_wanted(name) && wall_state_of(t) == WALL_IDLE)
		wall_set_state(t, WALL_FREE);
	if (t || !wall_is_wanted(name))
		return;
	if (!unused) {
		round_.left_out++;
		return;
	}
	*unused = (struct wall_thread){ .tid = tid, .accounted_ns = mono_ns() };
	if (unused == &wall.threads[round_.used])
		round_.used++;
	wall_set_state(unused, WALL_IDLE);
}

void wall_written(uint32_t slot, const struct wire_sample *record, uint32_t epoch,
		  uint32_t generation)
{
	struct wall_thread *t = &wall.threads[slot - 1];

	if (!wall.threads || !slot || slot > WALL_THREADS_MAX)
		return;
	t->node = record->node;
	t->wire_tid = record->tid;
	t->epoch = epoch;
	t->context = record->context;
	t->context_generation = generation;
}

uint64_t wall_bytes(void)
{
	return wall.threads ? round_.used * sizeof(struct wall_thread) : 0;
}

void wall_free(void)
{
	void *threads = wall.threads;

	__atomic_store_n(&wall.threads, NULL, __ATOMIC_SEQ_CST);
	if (threads)
		munmap(threads, THREADS_BYTES);
	round_.used = 0;
}

/* ---- one poll of one thread ---- */

static bool wall_send_signal(struct wall_thread *t)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = engine.signo;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_value.sival_ptr = t;
	wall_set_state(t, WALL_SENT);
	if (syscall(SYS_rt_tgsigqueueinfo, (long)getpid(), (long)t->tid, (long)engine.signo,
		    &info) == 0)
		return true;
	wall_set_state(t, WALL_IDLE);
	return false;
}

/* The stack during this time is unknown: the thread blocks the signal, or was not woken by it. */
static void wall_account_undelivered(struct wall_thread *t, uint64_t weight_ns)
{
	struct walk_frame frame = {
		.where = (uint64_t)(uintptr_t) "[no signal]",
		.bci = -1,
		.kind = WIRE_KIND_SYNTHETIC,
	};
	struct ring_sample head = {
		.mono_ns = mono_ns(),
		.event = WIRE_EVENT_WALL,
		.weight = weight_ns,
		.tid = t->tid,
		.n_frames = 1,
	};

	(void)producer_push(&head, &frame);
}

enum stack { STACK_SAME, STACK_SAME_UNWRITTEN, STACK_OTHER };

/* Is the stack still that of the last sample? It is if the thread has not run since, or is blocked
 * at the same place. */
static enum stack wall_compare(struct wall_thread *t, uint64_t cpu_ns)
{
	bool written = t->epoch && t->epoch == outlet->epoch();

	if (!written && (t->epoch || t->unwritten >= UNWRITTEN_MAX))
		return STACK_OTHER; /* a new epoch began, or the sample was dropped */
	if (t->cpu_ns == 0 || t->cpu_ns != cpu_ns) {
		/* the caller read @cpu_ns before this check: if the thread ran in between, the next
		 * poll sees another value */
		t->cpu_ns = wall_is_blocked_at(t->tid, t->pc, t->sp, &t->argument) ? cpu_ns : 0;
		if (t->cpu_ns == 0)
			return STACK_OTHER;
	}
	return written ? STACK_SAME : STACK_SAME_UNWRITTEN;
}

static void wall_repeat(const struct wall_thread *t, uint64_t now, uint64_t weight_ns)
{
	struct wire_sample record = {
		.mono_ns = now,
		.tid = t->wire_tid,
		.node = t->node,
		.weight_ns = weight_ns,
		.context = t->context,
	};

	outlet->wall_repeat_sample(&record, t->context_generation);
}

/* Sends a signal for a sample of @weight_ns plus the weight of earlier undelivered signals. */
static void wall_signal_thread(struct wall_thread *t, uint64_t weight_ns)
{
	if (t->undelivered_ns > UNDELIVERED_NS_MAX) {
		wall_account_undelivered(t, t->undelivered_ns);
		t->undelivered_ns = 0;
	}
	t->weight_ns = weight_ns + t->undelivered_ns;
	t->epoch = t->unwritten = 0;
	t->cpu_ns = t->pc = t->sp = t->argument = 0;
	if (wall_send_signal(t))
		t->undelivered_ns = 0;
	else
		t->undelivered_ns += weight_ns;
}

static void wall_poll(struct wall_thread *t, uint64_t now)
{
	uint64_t cpu_ns = thread_cpu_ns(t->tid), weight_ns;
	uint64_t until_ns = round_.begin_ns + round_.round_ns;
	uint32_t sent = WALL_SENT;
	enum stack stack;

	if (cpu_ns == UINT64_MAX) {
		wall_set_state(t, WALL_FREE);
		return;
	}
	if (wall_state_of(t) == WALL_IN_HANDLER || until_ns <= t->accounted_ns)
		/* the next poll accounts for this time too; or the thread was found in this
		 * round */
		return;
	/* the signal was not delivered: the thread blocks it, or it merged with one of the CPU
	 * engine's */
	if (__atomic_compare_exchange_n(&t->state, &sent, WALL_IDLE, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		t->undelivered_ns += t->weight_ns;
	stack = wall_compare(t, cpu_ns);
	if (stack == STACK_SAME_UNWRITTEN) {
		t->unwritten++;
		return;
	}
	weight_ns = until_ns - t->accounted_ns;
	t->accounted_ns = until_ns;
	if (stack == STACK_SAME)
		wall_repeat(t, now, weight_ns);
	else
		wall_signal_thread(t, weight_ns);
}

/* ---- rounds ---- */

/* Begins a round, which polls every thread once in random order. */
static void wall_begin_round(uint64_t now)
{
	uint64_t least_ns;

	/* more than a round late: the weights include the missed time */
	round_.begin_ns += round_.round_ns;
	if (now > round_.begin_ns + round_.interval_ns)
		round_.begin_ns = now;
	round_.n = round_.at = 0;
	for (uint32_t i = 0; i < round_.used; i++) {
		uint32_t k;

		if (wall_state_of(&wall.threads[i]) == WALL_FREE)
			continue;
		k = (uint32_t)wall_random_below(round_.n + 1);
		round_.order[round_.n++] = round_.order[k];
		round_.order[k] = (uint16_t)i;
	}
	least_ns = round_.n * (NS_PER_MS / WALL_POLLS_PER_MS);
	round_.round_ns = round_.interval_ns > least_ns ? round_.interval_ns : least_ns;
}

/* The time of the next poll: each thread has its own part of the round, and a random moment in
 * it. */
static uint64_t wall_next_poll_ns(void)
{
	uint64_t part_ns = round_.round_ns / (round_.n ? round_.n : 1);

	if (round_.at >= round_.n)
		return round_.begin_ns + round_.round_ns;
	return round_.begin_ns + round_.at * part_ns + wall_random_below(part_ns);
}

static uint64_t wall_count_tasks(void)
{
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st = { 0 };

	if (fd < 0)
		return 0;
	if (syscall(SYS_fstat, fd, &st) < 0)
		st.st_nlink = 0;
	close(fd);
	return st.st_nlink;
}

/* Finds new threads. Changed names are found by threads_refresh(). */
static void wall_find_new_threads(uint64_t now)
{
	uint64_t n_tasks = wall_count_tasks();

	round_.search_ns = now + SEARCH_NS;
	if (n_tasks && n_tasks == round_.n_tasks)
		return;
	round_.n_tasks = n_tasks;
	outlet->name_threads();
}

/* When to wake up next. A few polls at once cost less than a wake-up for each, and random gaps keep
 * their moments random. When behind, only a few polls are made at a time, so that not all signals
 * come at once. */
static uint64_t wall_next_wakeup_ns(uint64_t now)
{
	uint64_t gap_ns = POLLS_AT_ONCE * round_.round_ns / (round_.n ? round_.n : 1);

	gap_ns = gap_ns < GAP_NS_MAX ? gap_ns : GAP_NS_MAX;
	gap_ns = gap_ns / 2 + wall_random_below(gap_ns + 1);
	gap_ns = gap_ns > NS_PER_MS ? gap_ns : NS_PER_MS;
	return round_.next_ns > now + gap_ns ? round_.next_ns : now + gap_ns;
}

/* A signal without our handler would end the process. If another profiler has replaced the handler,
 * we take another signal; while the CPU engine runs, that is the session's task. */
static bool wall_may_signal(void)
{
	const char *why;

	return engine_has_signal() || (!engine.running && engine_hold_signal(&why) == 0);
}

static uint64_t wall_tick(uint64_t now)
{
	if (now >= round_.search_ns)
		wall_find_new_threads(now);
	if (!wall_may_signal())
		return now + NS_PER_S;
	for (uint32_t i = 0; i < WALL_POLLS_PER_MS && round_.next_ns <= now; i++) {
		if (round_.at < round_.n)
			wall_poll(&wall.threads[round_.order[round_.at++]], now);
		else
			wall_begin_round(now);
		round_.next_ns = wall_next_poll_ns();
	}
	return wall_next_wakeup_ns(now);
}

/* ---- begin and end ---- */

static uint64_t wall_clamp(uint64_t ns)
{
	if (ns == 0)
		return WALL_INTERVAL_NS;
	if (ns < INTERVAL_NS_MIN)
		return INTERVAL_NS_MIN;
	return ns > INTERVAL_NS_MAX ? INTERVAL_NS_MAX : ns;
}

static int wall_allocate(void)
{
	void *threads;

	if (wall.threads)
		return 0;
	threads = mmap(NULL, THREADS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (threads == MAP_FAILED)
		return -ENOMEM;
	__atomic_store_n(&wall.threads, threads, __ATOMIC_RELEASE);
	return 0;
}

static void wall_withdraw_signals(void)
{
	__atomic_store_n(&wall.on, 0, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; wall.threads && i < round_.used; i++)
		if (wall_state_of(&wall.threads[i]) != WALL_IN_HANDLER)
			wall_set_state(&wall.threads[i], WALL_FREE);
}

static int wall_begin(const struct wire_start *start, const char **note)
{
	uint32_t len = start->wall_threads.len;
	int r;

	/* as for CPU samples, see session.c */
	if (!engine_is_alone() && strcmp(walker_name(), "asgct") == 0) {
		*note = "no wall-clock samples: another profiler is loaded, and two profilers that use AsyncGetCallTrace can crash the JVM";
		return -EBUSY;
	}
	r = engine_hold_signal(note);

	if (r == 0 && wall_allocate() < 0) {
		*note = "no memory for the table of threads";
		r = -ENOMEM;
	}
	if (r < 0)
		return r;
	wall_withdraw_signals(); /* this START may select other threads */
	if (len >= sizeof(round_.wanted))
		len = sizeof(round_.wanted) - 1;
	if (len)
		memcpy(round_.wanted, start->wall_threads.p, len);
	round_.wanted[len] = '\0';
	round_.interval_ns = wall_clamp(start->wall_interval_ns);
	round_.random = mono_ns() | 1;
	round_.begin_ns = round_.next_ns = mono_ns();
	round_.round_ns = 0;
	round_.n = round_.at = 0;
	round_.n_tasks = 0;
	round_.search_ns = 0;
	engine.agent_tid = thread_id();
	__atomic_store_n(&wall.on, 1, __ATOMIC_SEQ_CST);
	return 0;
}

const struct events_source wall_source = {
	.step = "wall",
	.event = WIRE_EVENT_WALL,
	.begin = wall_begin,
	.end = wall_withdraw_signals,
	.tick = wall_tick,
};
