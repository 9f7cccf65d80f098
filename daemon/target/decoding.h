/*
 * limits.decode_cpu: what a target says costs the daemon CPU time. It earns some each second, a
 * little and a part of what its own process uses by the kernel's clock, and pays for each message.
 * Who owes is held back: its receiver may pass on so many bytes and no more, its pipe fills, and
 * its agent drops and counts. docs/decisions/0015.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target;
struct targets;

/* Of one target. */
struct target_decoding {
	int64_t left_ns; /* earned and not spent */
	uint64_t total_ns; /* spent since it was found */
	uint64_t cpu_ns; /* of its process, when it last asked */
	uint64_t asked_ns, most_ns; /* in this second; what it may keep */
	uint64_t part_ns; /* of a second, what it earned in the last one in which it asked */
	bool cut; /* it wanted more: the sum of all is the bound */
	uint64_t spent_ns, bytes; /* of late: what a byte costs */
	uint64_t uncharged; /* bytes since the last targets_charge() */
	/* its receiver has an allowance */
	bool bounded;
	uint32_t allowed; /* the last one, bytes */
	uint64_t came; /* since then */
	uint64_t allowed_mono_ns,
		held_mono_ns; /* the last one, and when it was used up; 0 = never */
};

/* Of one tenant, for all of its targets: starts, and new processes, which have earned nothing. */
struct tenant_decoding {
	int64_t reserve_ns;
	uint64_t reserve_asked_ns;
	uint64_t asked_ns, level_ns; /* of all its targets, and what one of them gets at most */
};

void decoding_new_tenant(struct target *t); /* the first of its tenant */
void decoding_begin(struct target *t); /* a session begins */
/* A message of so many bytes took so much CPU time. The session may have ended by it. */
void decoding_pay(struct target *t, uint64_t cpu_ns, size_t bytes);
/* Its agent has been told to end (its process has ended): decoding the rest of the pipe may cost
 * something, whatever budget is left. */
void decoding_detach(struct target *t);
void decoding_drain(struct target *t);
void decoding_end(struct target *t); /* it is gone; its tenant pays what it owes */
void decoding_on_second(struct targets *table);
/* It was held back a moment ago. */
bool decoding_is_held(const struct target *t);
