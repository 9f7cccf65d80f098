/* See decode_budget.h. */
#include "daemon/target/decode_budget.h"

#define DEBT_MAX_NS 2000000000ll /* a single message causes at most this debt */
#define ROUNDS_MAX  32 /* rounds of the search for a level; then it is slightly too low */

void decode_earn(int64_t *left_ns, uint64_t earned_ns, uint64_t most_ns)
{
	uint64_t room = 0;

	if (*left_ns < (int64_t)most_ns)
		room = (uint64_t)((int64_t)most_ns - *left_ns);
	*left_ns += (int64_t)(earned_ns < room ? earned_ns : room);
}

void decode_spend(int64_t *own_ns, int64_t *shared_ns, uint64_t spent_ns)
{
	*own_ns -= spent_ns < (uint64_t)DEBT_MAX_NS ? (int64_t)spent_ns : DEBT_MAX_NS;
	if (*own_ns < 0 && *shared_ns > 0) {
		int64_t part = -*own_ns < *shared_ns ? -*own_ns : *shared_ns;

		*own_ns += part;
		*shared_ns -= part;
	}
	if (*own_ns < -DEBT_MAX_NS)
		*own_ns = -DEBT_MAX_NS;
}

uint64_t decode_level(const uint64_t *asked, unsigned n, uint64_t bound)
{
	uint64_t level = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		uint64_t rest = bound;
		unsigned above = 0;

		for (unsigned i = 0; i < n; i++) {
			if (asked[i] > level)
				above++;
			else
				rest -= asked[i];
		}
		if (!above)
			return UINT64_MAX;
		if (rest / above == level)
			break;
		level = rest / above;
	}
	return level;
}
