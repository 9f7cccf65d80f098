/*
 * The accounting of a session, as LEDGER frames carry it. For each kind of event taken = written +
 * sum(dropped) in every ledger. Only the agent's thread.
 */
#pragma once

#include "agent/base/agent.h"

struct ledger {
	struct counters base; /* the handlers' counters when the session began */
	/* this session's written and the writer's own drops; taken is not used */
	struct wire_accounts own[WIRE_EVENT_COUNT];
	/* events taken while there was no reader: this session's no_reader */
	struct {
		uint64_t n, weight;
	} gap[WIRE_EVENT_COUNT];
	uint64_t pipe_bytes;
	uint64_t process_cpu_base_ns, thread_cpu_base_ns, begin_ns;
	bool details; /* START asks for memory by part and the times in the handler */
};

extern struct ledger ledger;

/* Copies the counters at a moment when no handler is between taken and pushed or dropped; *ret_head
 * is the ring's position then. false = handlers were busy all the time, try later. */
bool ledger_snapshot(struct counters *ret, uint64_t *ret_head);
/* A session begins: all counters start from zero, except the events of the gap. */
void ledger_begin(void);
void ledger_written(enum wire_event event, uint64_t n, uint64_t weight);
void ledger_drop(enum wire_event event, enum wire_drop cause, uint64_t n, uint64_t weight);
void ledger_fill(const struct counters *now, struct wire_ledger *ret);
