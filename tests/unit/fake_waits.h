/* Stand-ins for what the table of waits works with: waiting threads, the JVM, the reader of the
 * ring. */
#pragma once

#include "agent/base/agent.h"
#include "agent/events/waits.h"
#include "agent/hotspot/owner.h"
#include "agent/output/writer.h"
#include "agent/walker/walker.h"

#define MIN   NS_PER_MS
#define CLASS 4711u

extern struct fake_waits {
	uint64_t clock_ns; /* stands still */
	uint32_t carrier_number; /* id of the virtual thread that calls; 0 = none */
	struct owner_monitor blocked_on;
	uint32_t named; /* the last thread whose name was sent */
	/* a sleeping owner's CPU clock stands still, another owner's grows with each reading;
	 * CPU time that a report costs the agent */
	bool owner_sleeps;
	uint64_t tell_cost_ns;
	/* owners that the JVM does not know: marks from 1 << 30 on, which the test resolves */
	uint32_t found_owner, ended_marks;
	int n_wakes;
	/* a stack: a frame of no interest, then this one */
	enum idle_sight sight;
	uint8_t frame_kind;
	uint64_t anchor_sp, return_address;
	uint32_t looks;
	/* the writer's answers, what it got directly, and what came through the ring */
	enum writer_result writer_answers;
	struct ring_sample reported[64];
	uint32_t n_reported;
	struct {
		uint64_t n, ns;
		struct ring_sample last;
	} read;
	uint64_t short_before, unpaired_before; /* the counters when the test began */
} fake;

int fake_setup(void **state);
int fake_teardown(void **state);
void fake_drain(void);
/* What the agent's thread does every 250 ms: empties the ring, scans the table, writes to the
 * pipe. */
void fake_round_trip(void);
const struct event_counters *fake_counters(void);
void fake_counters_are_exact(void);
void fake_counts_are(uint64_t too_short, uint64_t unpaired);
void fake_idle_are(uint64_t waits, uint64_t ns); /* since the test's begin */
void fake_begin(uint64_t thread, uint64_t key, enum wire_wait how);
void fake_end(uint64_t thread, uint64_t key, enum wire_wait how);
void fake_look(void *context, struct wait_lock *lock);

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
