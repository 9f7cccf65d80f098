/* See safepoint_timers.h. What was found is used only if the values agree with each other. */
#include "agent/hotspot/safepoint_timers.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/clock.h"
#include "agent/base/guard.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/perf_data.h"

#define FIRST_JDK  8
#define LAST_JDK   12
#define NEAR_LOG2  40
#define VALUE_FROM 24u /* where a PerfData object may have the address of its counter's value */
#define VALUE_TO   56u
/* The JVM copies its own clock into a counter every 50 ms, on a busy machine later. */
#define COPY_LATE_NS (5 * NS_PER_S)
/* What the sums of times may be off: the JVM's start is not in them, and at each safepoint they
 * overlap a little. */
#define SUM_OFF_NS	(60 * NS_PER_S)
#define SUM_OFF_EACH_NS 10000u
#define TRIES		4
#define PAIR_MAX	65536u

struct search {
	struct libjvm_image image;
	uint64_t program_break;
	struct safepoint_timers found;
	/* counters: the sums of times in safepoints and out of them */
	uint64_t stopped_at, running_at;
};

static char collectors[SAFEPOINT_COLLECTORS][PERF_DATA_TEXT_MAX];

/* The addresses of neighbouring variables: the pointers to three counters, then both times. */
enum { RUNNING = -2, STOPPED = -1, NUMBER, REACHING, BEGIN, END };

static bool timers_is_near(uint64_t at, uint64_t place)
{
	return (at ^ place) >> NEAR_LOG2 == 0;
}

/* Is the word a pointer to the object, in malloc's memory, that describes this counter? */
static bool timers_points_to(const struct search *s, uint64_t word, uint64_t counter)
{
	if (!word || word % 8 || (word >= s->image.low && word < s->image.high) ||
	    !(timers_is_near(word, s->image.low) || timers_is_near(word, s->program_break)))
		return false;
	for (uint32_t at = VALUE_FROM; at <= VALUE_TO; at += 8)
		if (load64_sig(word + at) == counter)
			return true;
	return false;
}

/* Are the neighbours of the variable that points to the number of safepoints the other variables of
 * the class? Compilers lay them out in the order of the source, or in the reverse. */
static bool timers_take(struct search *s, const uint64_t *at, ptrdiff_t step)
{
	const uint64_t *low = at + (step > 0 ? RUNNING : -END);
	const uint64_t *high = at + (step > 0 ? END : -RUNNING);

	if ((uint64_t)(uintptr_t)low < s->image.bss_low ||
	    (uint64_t)(uintptr_t)(high + 1) > s->image.bss_high ||
	    !timers_points_to(s, at[REACHING * step], s->found.reaching_at) ||
	    !timers_points_to(s, at[STOPPED * step], s->stopped_at) ||
	    !timers_points_to(s, at[RUNNING * step], s->running_at))
		return false;
	s->found.begin = at + BEGIN * step;
	s->found.end = at + END * step;
	return true;
}

/* Searches the JVM's variables, which are in .bss because they are zero before it starts. */
static bool timers_search(struct search *s)
{
	const uint64_t *at = (const uint64_t *)(uintptr_t)((s->image.bss_low + 7) & ~7ull);
	const uint64_t *end = (const uint64_t *)(uintptr_t)(s->image.bss_high & ~7ull);

	s->program_break = (uint64_t)syscall(SYS_brk, 0L);
	for (; at < end; at++)
		if (timers_points_to(s, *at, s->found.number_at) &&
		    (timers_take(s, at, 1) || timers_take(s, at, -1)))
			return true;
	return false;
}

/* Two numbers of a table, such as that of the JVM's symbols, look like a time in the first hours
 * after the machine's start. A time of which both halves are as small is one in 65,536. */
static bool timers_is_pair(uint64_t word)
{
	return word >> 32 < PAIR_MAX && (uint32_t)word < PAIR_MAX;
}

/* The time at which the JVM's own clock was 0 is a variable, too. The copy of that clock in a
 * counter tells it within some milliseconds. */
static bool timers_find_start(struct search *s)
{
	uint64_t copy_at = perf_data_number("sun.os.hrt.ticks");
	uint64_t rate_at = perf_data_number("sun.os.hrt.frequency");
	const uint64_t *at = (const uint64_t *)(uintptr_t)((s->image.bss_low + 7) & ~7ull);
	const uint64_t *end = (const uint64_t *)(uintptr_t)(s->image.bss_high & ~7ull);
	uint64_t passed = load64_sig(copy_at), last;

	if (!passed || load64_sig(rate_at) != NS_PER_S)
		return false;
	last = mono_ns() - passed; /* the clock goes on before the copy is made */
	for (; at < end; at++) {
		if (*at > last || *at + COPY_LATE_NS < last || timers_is_pair(*at))
			continue;
		if (s->found.started_ns && s->found.started_ns != *at)
			return false; /* two that may be it */
		s->found.started_ns = *at;
	}
	return s->found.started_ns != 0;
}

/* Reads values that belong together; false = they changed meanwhile. */
static bool timers_agree(const struct search *s, bool *ret_agree)
{
	uint64_t begin = __atomic_load_n(s->found.begin, __ATOMIC_ACQUIRE);
	uint64_t end = __atomic_load_n(s->found.end, __ATOMIC_ACQUIRE);
	uint64_t number = load64_sig(s->found.number_at);
	uint64_t sum = load64_sig(s->stopped_at) + load64_sig(s->running_at);
	uint64_t now = mono_ns() - s->found.started_ns;
	uint64_t until = begin > end ? begin : end; /* the sums go up to it */
	uint64_t off = sum > until ? sum - until : until - sum;

	*ret_agree = end && until <= now && (begin != 0) == (number != 0) &&
		     off < SUM_OFF_NS + number * SUM_OFF_EACH_NS;
	return __atomic_load_n(s->found.begin, __ATOMIC_ACQUIRE) == begin &&
	       __atomic_load_n(s->found.end, __ATOMIC_ACQUIRE) == end;
}

static bool timers_plausible(const struct search *s)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	bool agree;

	for (int i = 0; i < TRIES; i++) {
		if (timers_agree(s, &agree) && agree)
			return true;
		nanosleep(&moment, NULL);
	}
	return false;
}

static const char *timers_name(char *buf, uint32_t i, const char *what)
{
	static const char begin[] = "sun.gc.collector.0.";

	memcpy(buf, begin, sizeof(begin));
	buf[sizeof(begin) - 3] = (char)('0' + i);
	strcpy(buf + sizeof(begin) - 1, what);
	return buf;
}

const char *safepoint_timers_collector(uint32_t i)
{
	return i < SAFEPOINT_COLLECTORS ? collectors[i] : "";
}

/* Shenandoah's counters also count what it does while the threads run. ZGC has none. */
static void timers_find_collectors(struct safepoint_timers *t)
{
	static const char other[] = "Shenandoah";
	char name[64];

	for (uint32_t i = 0; i < SAFEPOINT_COLLECTORS; i++) {
		t->collected_at[i] = perf_data_number(timers_name(name, i, "lastEntryTime"));
		if (!t->collected_at[i] ||
		    !perf_data_text(timers_name(name, i, "name"), collectors[i]) ||
		    strncmp(collectors[i], other, sizeof(other) - 1) == 0)
			return;
		t->n_collectors++;
	}
}

bool safepoint_timers_find(struct safepoint_timers *ret)
{
	static const sigset_t nothing_blocked;
	uint32_t jdk = libjvm_version().feature;
	struct search s = { 0 };

	if (jdk < FIRST_JDK || jdk > LAST_JDK || !libjvm_image(&s.image))
		return false;
	(void)guard_begin_sig(&nothing_blocked);
	s.found.number_at = perf_data_number("sun.rt.safepoints");
	s.found.reaching_at = perf_data_number("sun.rt.safepointSyncTime");
	s.stopped_at = perf_data_number("sun.rt.safepointTime");
	s.running_at = perf_data_number("sun.rt.applicationTime");
	if (!s.found.number_at || !s.found.reaching_at || !s.stopped_at || !s.running_at ||
	    !timers_find_start(&s) || !timers_search(&s) || !timers_plausible(&s))
		return false;
	timers_find_collectors(&s.found);
	*ret = s.found;
	return true;
}
