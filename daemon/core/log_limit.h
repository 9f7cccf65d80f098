/*
 * A bound on the log lines that somebody else can bring about: so many at once, so many a second.
 * What is held back is counted, and said in one line when there is room again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct log_limit {
	unsigned burst, per_s; /* the owner's; burst 0 = no bound */
	uint64_t held; /* lines held back since the last one */
	unsigned used; /* of burst */
	uint64_t mono_ns; /* until when used was reckoned */
};

/* May a line be written now? @who: whose lines they are, "pid=7"; for the line about those held. */
bool log_allowed(struct log_limit *l, const char *who);
/* Says how many were held back, if any were: there will be no more of them. */
void log_limit_end(struct log_limit *l, const char *who);
