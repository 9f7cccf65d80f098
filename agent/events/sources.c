/* See sources.h. */
#include "agent/events/sources.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include "agent/base/outlet.h"
#include "agent/engine/wall.h"
#include "agent/events/alloc.h"
#include "agent/events/monitors.h"
#include "agent/events/park.h"
#include "agent/events/push.h"
#include "agent/events/sought_names.h"
#include "agent/events/unknown_owner.h"
#include "agent/events/unmounted.h"
#include "agent/events/waits.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/virtual_name.h"
#include "agent/walker/walker.h"

static int park_begin(const struct wire_start *start, const char **note)
{
	const char *why = "";
	int r = park_start(&why);

	(void)start;
	if (r < 0)
		*note = why;
	return r;
}

static const struct events_source park_source = {
	.step = "park",
	.event = WIRE_EVENT_LOCK,
	.begin = park_begin,
	.end = park_stop,
	.tick = park_tick,
};

static const struct events_source *const sources[] = {
	&waits_source, /* begins first: it has the table that the next ones fill */
	&park_source,	       &park_in_progress_source, /* after park_source */
	&unknown_owner_source, &sought_names_source,
	&unmounted_source, /* before the next one, which costs nothing more beside it */
	&monitors_source,      &alloc_source,
	&wall_source,
};
#define N_SOURCES (sizeof(sources) / sizeof(sources[0]))

/* Between two calls of a begin() that finds the JVM still starting. */
#define AGAIN_NS (200 * NS_PER_MS)

static struct wire_start begun_with; /* the last START, without its texts */
static struct {
	bool on;
	bool again; /* begin() is called again at next_ns */
	uint64_t next_ns;
	const char *note; /* the last one sent to this reader; "" = none */
} state[N_SOURCES];

void sources_new_reader(void)
{
	for (size_t i = 0; i < N_SOURCES; i++)
		state[i].note = "";
}

static void sources_report(size_t i, const char *note)
{
	if (strcmp(note, state[i].note ? state[i].note : "") != 0 &&
	    outlet->note(sources[i]->step, note))
		state[i].note = note;
}

void sources_note(const struct events_source *source, const char *note)
{
	for (size_t i = 0; i < N_SOURCES; i++)
		if (sources[i] == source)
			sources_report(i, note);
}

static void begin_source(size_t i, const struct wire_start *start)
{
	const char *note =
		"left out: this JVM's libjvm lacks fields that the agent needs for these events";
	int r = -ENOTSUP;

	if (strcmp(walker_name(), "hotspot") == 0) {
		note = "";
		r = sources[i]->begin(start, &note);
	}

	state[i].on = r == 0;
	state[i].again = r == -EAGAIN;
	state[i].next_ns = r == 0 && sources[i]->tick ? 0 : UINT64_MAX;
	if (state[i].again)
		state[i].next_ns = mono_ns() + AGAIN_NS;
	sources_report(i, note);
}

static void end_source(size_t i)
{
	if (state[i].on)
		sources[i]->end();
	state[i].on = state[i].again = false;
	state[i].next_ns = UINT64_MAX;
}

static void source_allow(size_t i)
{
	if (state[i].on)
		__atomic_or_fetch(&events.on, 1u << sources[i]->event, __ATOMIC_SEQ_CST);
}

/* The CPU engine handles CPU, and the times off the CPU that the kernel sees. */
static uint32_t sources_wanted(const struct wire_start *start)
{
	uint32_t others = 1u << WIRE_EVENT_CPU;

	if (!start->virtual_min_ns)
		others |= 1u << WIRE_EVENT_OFFCPU;
	return events_wanted(start) & ~others;
}

void sources_begin(const struct wire_start *start)
{
	uint32_t wanted = sources_wanted(start);
	uint32_t gone = events.on & ~wanted;

	events.lock_min_ns = events_lock_min_ns(start);
	events.idle_apart = start->flags & WIRE_START_IDLE_APART;
	__atomic_and_fetch(&events.on, ~gone, __ATOMIC_SEQ_CST);
	for (size_t i = N_SOURCES; i-- > 0;) {
		state[i].again = false; /* this START may not ask for it; else it begins below */
		if (gone & 1u << sources[i]->event)
			end_source(i);
		if (!(wanted & 1u << sources[i]->event))
			sources_report(i, "");
	}
	thread_name_init(agent.env);
	if (wanted)
		virtual_name_init(agent.env);
	if (wanted && push_init() < 0)
		wanted = 0; /* LEDGER reports which events are on */
	for (size_t i = 0; i < N_SOURCES; i++)
		if (wanted & 1u << sources[i]->event)
			begin_source(i, start);
	for (size_t i = 0; i < N_SOURCES; i++)
		source_allow(i);
	begun_with = *start;
	begun_with.secret = begun_with.wall_threads = begun_with.mdc_keys = (struct wire_str){ 0 };
}

bool sources_end(void)
{
	bool quiet;

	for (size_t i = 0; i < N_SOURCES; i++)
		state[i].again = false;
	if (!events.on)
		return true;
	__atomic_store_n(&events.on, 0, __ATOMIC_SEQ_CST);
	for (size_t i = N_SOURCES; i-- > 0;)
		end_source(i);
	quiet = events_wait_until_left();
	if (quiet)
		push_free();
	return quiet;
}

static bool sources_is_due(size_t i)
{
	return sources[i]->due && sources[i]->due();
}

void sources_tick(uint64_t now_ns)
{
	for (size_t i = 0; i < N_SOURCES; i++) {
		if (state[i].again && now_ns >= state[i].next_ns) {
			begin_source(i, &begun_with);
			source_allow(i);
		}
		if (state[i].on && (now_ns >= state[i].next_ns || sources_is_due(i)))
			state[i].next_ns = sources[i]->tick(now_ns);
	}
}

uint64_t sources_next_ns(void)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < N_SOURCES; i++) {
		if (state[i].on && sources_is_due(i))
			return 0;
		if ((state[i].on || state[i].again) && state[i].next_ns < next)
			next = state[i].next_ns;
	}
	return next;
}

uint64_t sources_bytes(void)
{
	return push_bytes() + waits_bytes() + wall_bytes() + unmounted_table_bytes();
}
