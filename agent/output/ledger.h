/*
 * The books: what a LEDGER frame says. Consistent by construction: taken = written + sum(dropped),
 * for each kind of event. Only the agent's thread.
 */
#pragma once

#include "agent/base/agent.h"

struct ledger {
	struct counters base; /* the handlers' counters when the session began */
	/* this session's written and the writer's own drops; taken is not used */
	struct wire_books own[WIRE_EVENT_COUNT];
	/* taken while no reader was there: this session's no_reader */
	struct {
		uint64_t n, weight;
	} gap[WIRE_EVENT_COUNT];
	uint64_t pipe_bytes;
	uint64_t process_cpu_base_ns, thread_cpu_base_ns, begin_ns;
	bool details; /* the session's START wants memory by part and times in the handler */
};

extern struct ledger ledger;

/* A moment when no handler is half way: *ret_head is the ring's position then. false = always busy
 * just now, try later. */
bool ledger_snapshot(struct counters *ret, uint64_t *ret_head);
/* A session begins: counters from zero, but for the gap. */
void ledger_begin(void);
void ledger_written(enum wire_event event, uint64_t n, uint64_t weight);
void ledger_drop(enum wire_event event, enum wire_drop cause, uint64_t n, uint64_t weight);
void ledger_fill(const struct counters *now, struct wire_ledger *ret);
