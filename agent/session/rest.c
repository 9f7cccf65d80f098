/* See rest.h. */
#include "agent/session/rest.h"

#include "agent/base/agent.h"

#define REST_NS	  (100 * NS_PER_MS)
#define STEADY_NS (300 * NS_PER_MS) /* time between two batches */
#define CHECK_NS  NS_PER_S
/* threads that block the signal never wake this thread, so it checks at least this often */
#define CHECK_MAX_NS (8 * NS_PER_S)

static struct {
	uint64_t batch_ns; /* time of the last non-empty batch */
	uint64_t until_ns;
	uint64_t check_ns, pause_ns; /* time of the last check; pause until the next one */
} rest;

void rest_begin(uint64_t now_ns)
{
	rest.batch_ns = rest.until_ns = 0;
	rest.check_ns = now_ns;
	rest.pause_ns = CHECK_NS;
}

bool rest_gathers(uint64_t now_ns)
{
	return rest.batch_ns && now_ns - rest.batch_ns < STEADY_NS;
}

void rest_batch(uint64_t now_ns, bool some)
{
	if (some) {
		rest.until_ns = rest_gathers(now_ns) ? now_ns + REST_NS : 0;
		rest.batch_ns = now_ns;
		rest.pause_ns = CHECK_NS;
	} else if (now_ns >= rest.until_ns) {
		rest.until_ns = 0;
	}
}

uint64_t rest_until_ns(void)
{
	return rest.until_ns;
}

uint64_t rest_check_ns(void)
{
	return rest.check_ns + rest.pause_ns;
}

void rest_checked(uint64_t now_ns, bool quiet)
{
	rest.check_ns = now_ns;
	if (!quiet)
		rest.pause_ns = CHECK_NS;
	else if (rest.pause_ns < CHECK_MAX_NS)
		rest.pause_ns *= 2;
}
