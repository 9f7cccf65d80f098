/*
 * The books: what a LEDGER frame says. Consistent by construction: taken = written + sum(dropped).
 * Only the agent's thread.
 */
#pragma once

#include "agent/agent.h"

struct ledger {
	struct books base; /* the handlers' counters when the session began */
	uint64_t written, written_ns; /* this session */
	uint64_t drop[WIRE_DROP_COUNT], drop_ns[WIRE_DROP_COUNT]; /* the writer's own drops */
	uint64_t gap, gap_ns; /* taken while no reader was there: this session's no_reader */
	uint64_t pipe_bytes;
	uint64_t process_cpu_base_ns, thread_cpu_base_ns;
	bool details; /* the session's START wants memory by part and times in the handler */
};

extern struct ledger ledger;

/* A moment when no handler is half way: *ret_head is the ring's position then. false = always busy
 * just now, try later. */
bool ledger_snapshot(struct books *ret, uint64_t *ret_head);
/* A session begins: counters from zero, but for the gap. */
void ledger_begin(void);
void ledger_drop(enum wire_drop cause, uint64_t samples, uint64_t ns);
void ledger_fill(const struct books *now, struct wire_ledger *ret);
