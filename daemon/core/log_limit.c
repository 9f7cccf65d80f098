/* See log_limit.h. */
#include "daemon/core/log_limit.h"

#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

static void log_limit_refill(struct log_limit *l)
{
	uint64_t now = clock_mono_ns(), n;

	if (!l->mono_ns)
		l->mono_ns = now;
	n = (now - l->mono_ns) / (NS_PER_S / l->per_s);
	if (n < l->used) {
		l->used -= (unsigned)n;
		l->mono_ns += n * (NS_PER_S / l->per_s);
	} else {
		l->used = 0;
		l->mono_ns = now;
	}
}

bool log_allowed(struct log_limit *l, const char *who)
{
	if (!l->burst)
		return true;
	log_limit_refill(l);
	if (l->used >= l->burst) {
		l->held++;
		return false;
	}
	l->used++;
	log_limit_end(l, who);
	return true;
}

void log_limit_end(struct log_limit *l, const char *who)
{
	if (l->held)
		log_warn("log.held_back", "%s lines=%llu", who, (unsigned long long)l->held);
	l->held = 0;
}
