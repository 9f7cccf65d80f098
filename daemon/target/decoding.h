/*
 * limits.decode_cpu: how much CPU time the daemon may spend on decoding what each target sends.
 * Each second a target earns some: a little, a part of the CPU time that its own process uses by
 * the kernel's clock, and some for each signal that the kernel sent it. It pays for each message. A
 * target in debt is held back: its receiver may pass on a limited number of bytes, its pipe fills
 * up, and its agent drops and counts. docs/decisions/0015.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target;
struct targets;

/* The budget of one target. */
struct target_decoding {
	int64_t left_ns; /* earned and not spent; negative = in debt */
	uint64_t total_ns; /* spent since the target was found */
	/* CPU time of its process, and signals for times off the CPU, when it last asked */
	uint64_t cpu_ns, signals;
	uint64_t asked_ns, most_ns; /* asked for in this second; the most that it may keep */
	uint64_t part_ns; /* earned in the last second in which it asked */
	bool cut; /* it got less than it asked for, because of the bound for all */
	uint64_t spent_ns, bytes; /* recent sums, which tell the cost of a byte */
	uint64_t uncharged; /* bytes since the last targets_charge() */
	/* true = the receiver may pass on only `allowed` bytes */
	bool bounded;
	uint32_t allowed; /* bytes, as last set */
	uint64_t came; /* bytes that came since */
	uint64_t allowed_mono_ns, held_mono_ns; /* when it last got an allowance, and when that was
						   used up; 0 = never */
};

/* The reserve of a tenant, for all of its targets: it pays for starts and for new processes,
 * which have earned nothing yet. */
struct tenant_decoding {
	int64_t reserve_ns;
	uint64_t reserve_asked_ns;
	uint64_t asked_ns; /* asked for by all of its targets together, and the reserve */
	uint64_t level_ns; /* the most that each of them gets */
};

void decoding_new_tenant(struct target *t); /* for the first target of a tenant */
void decoding_begin(struct target *t); /* a session begins */
/* A message of @bytes took @cpu_ns of CPU time. It may have ended the session. */
void decoding_pay(struct target *t, uint64_t cpu_ns, size_t bytes);
/* The agent was asked to end (detach), or its process has ended (drain): allows some CPU time for
 * decoding the rest of the pipe, whatever budget is left. */
void decoding_detach(struct target *t);
void decoding_drain(struct target *t);
void decoding_end(struct target *t); /* the target has ended: its tenant pays its debt */
void decoding_on_second(struct targets *table);
/* Is the target held back, or was it a moment ago? */
bool decoding_is_held(const struct target *t);
