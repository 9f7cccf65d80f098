/* targets.attach_rate: the number of attaches that may begin within one second. Pure. */
#pragma once

#include <stdint.h>

#define ATTACH_RATE_MAX 100

struct budget {
	uint64_t begun_mono_ns[ATTACH_RATE_MAX]; /* a ring of the last attaches; 0 = none */
	unsigned next;
};

/* How long the next attach has to wait, ns; 0 = it may begin. @rate: attaches per second, at most
 * ATTACH_RATE_MAX; 0 = no limit. */
uint64_t budget_wait_ns(const struct budget *b, uint64_t rate, uint64_t now_mono_ns);
void budget_begin(struct budget *b, uint64_t now_mono_ns);
/* The last attach did not touch its JVM after all, and does not count. */
void budget_give_back(struct budget *b);
