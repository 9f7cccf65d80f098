/*
 * The last safepoints of one target. They show whether a thread that was off the CPU waited for a
 * safepoint, and how many safepoints the agent did not see. Pure memory, bounded. Times are
 * CLOCK_MONOTONIC. The target is not trusted: records whose numbers run backwards are left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "proto/wire.h"

#define PAUSES_MAX 512u

struct pauses {
	bool known; /* the agent reads them */
	uint64_t number; /* of the last */
	uint64_t since_ns; /* nothing before is known */
	uint64_t seen, unseen; /* since then; unseen: their numbers never came */
	uint32_t n, cap; /* of list[], round and round once there are PAUSES_MAX */
	struct pauses_one {
		uint64_t begin_ns, end_ns;
		uint32_t unseen; /* between the one before and this one */
		bool collects;
	} *list; /* owned; grows */
};

/* A new session begins, with other numbers; also frees the memory. */
void pauses_forget(struct pauses *p);
/* Adds a record. false = it is no pause to show: a session's first record, repeated, or
 * implausible. Without memory all is forgotten, and nothing is known of the session's pauses. */
bool pauses_add(struct pauses *p, const struct wire_pause *w);

enum pauses_answer {
	PAUSES_UNKNOWN, /* some of that time is not known */
	PAUSES_NONE, /* for the most part there was none */
	PAUSES_SAFEPOINT,
	PAUSES_GC,
};
/* The kind of safepoint that lasted for the greater part of that time. */
enum pauses_answer pauses_during(const struct pauses *p, uint64_t begin_ns, uint64_t end_ns);
/* The kind of safepoint that began before @begin_ns and ended after @end_ns, or so shortly before
 * it that it had just let the thread go; PAUSES_NONE = none that is known. */
enum pauses_answer pauses_around(const struct pauses *p, uint64_t begin_ns, uint64_t end_ns);
/* Safepoints that were not seen and may have been in that time. */
uint64_t pauses_unseen(const struct pauses *p, uint64_t begin_ns, uint64_t end_ns);
