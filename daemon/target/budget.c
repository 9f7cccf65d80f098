/* See budget.h. */
#include "daemon/target/budget.h"

#include "daemon/ground/clock.h"

uint64_t budget_wait_ns(const struct budget *b, uint64_t rate, uint64_t now)
{
	uint64_t begun;

	if (!rate)
		return 0;
	if (rate > ATTACH_RATE_MAX)
		rate = ATTACH_RATE_MAX;
	begun = b->begun_mono_ns[(b->next + ATTACH_RATE_MAX - rate) % ATTACH_RATE_MAX];
	return begun && begun + NS_PER_S > now ? begun + NS_PER_S - now : 0;
}

void budget_begin(struct budget *b, uint64_t now)
{
	b->begun_mono_ns[b->next] = now;
	b->next = (b->next + 1) % ATTACH_RATE_MAX;
}

void budget_give_back(struct budget *b)
{
	b->next = (b->next + ATTACH_RATE_MAX - 1) % ATTACH_RATE_MAX;
	b->begun_mono_ns[b->next] = 0;
}
