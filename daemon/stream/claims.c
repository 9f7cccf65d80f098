/*
 * Checks an agent's claims against clocks of the host: a sample of CPU time cannot stand for more
 * than the process has used, nor a wait for more than its age. Anything beyond is not passed on and
 * is counted as dropped{implausible}.
 */
#include "daemon/stream/stream_priv.h"

/* tolerance: the clocks are not read at the moments when the samples are taken */
#define SLACK_NS	5000000000ull
#define SLACK_SHARE	4 /* plus a quarter: weights are right only on average */
#define SLACK_BYTES	(1ull << 32)
#define BYTES_PER_NS	256 /* Java's memory is cleared before use, and no core clears it faster */
#define EVENT_NS	100 /* no event costs the process less CPU time than this */
#define SLACK_EVENTS	1000000ull
#define ACCOUNTS_FACTOR 16 /* a ledger that exceeds the limit by this much ends the stream */

/* a * b + c, saturating */
static uint64_t claims_bound(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) || __builtin_add_overflow(r, c, &r) ? UINT64_MAX
										    : r;
}

static bool claims_fits(const struct stream *s, enum wire_event event, uint64_t weight)
{
	const struct stream_limits *l = &s->limits;
	uint64_t room;

	switch (event) {
	case WIRE_EVENT_CPU:
		room = claims_bound(l->cpu_ns / SLACK_SHARE, SLACK_SHARE + 1, SLACK_NS);
		break;
	case WIRE_EVENT_ALLOC:
		room = claims_bound(l->cpu_ns, BYTES_PER_NS, SLACK_BYTES);
		break;
	default: /* any number of threads may wait at once: waits have no common limit, each is
		    checked alone */
		return weight <= claims_bound(l->age_ns, 1, SLACK_NS);
	}
	return s->believed[event] <= room && weight <= room - s->believed[event];
}

static void claims_ask(struct stream *s)
{
	s->ops.limits(s->userdata, &s->limits);
	s->limits_asked = true;
}

/* Reads the clocks again only if their last reading does not allow @weight, and at most once for
 * the bytes of one stream_feed(): all of them were written before that reading. */
bool claims_allow(struct stream *s, enum wire_event event, uint64_t weight)
{
	if (!s->ops.limits)
		return true;
	if (!claims_fits(s, event, weight) && !s->limits_asked)
		claims_ask(s);
	if (!claims_fits(s, event, weight))
		return false;
	s->believed[event] += weight;
	return true;
}

static bool accounts_fit(const struct stream *s, enum wire_event event,
			 const struct wire_accounts *b)
{
	const struct stream_limits *l = &s->limits;

	if (b->taken > l->cpu_total_ns / EVENT_NS + SLACK_EVENTS)
		return false;
	return event != WIRE_EVENT_CPU ||
	       b->taken_weight <=
		       claims_bound(l->cpu_total_ns, ACCOUNTS_FACTOR, ACCOUNTS_FACTOR * SLACK_NS);
}

/* The counters include what was dropped while no daemon was connected, so the limit is what the
 * process has used in its whole life. */
bool claims_allow_accounts(struct stream *s, enum wire_event event, const struct wire_accounts *b)
{
	if (!s->ops.limits)
		return true;
	if (!accounts_fit(s, event, b) && !s->limits_asked)
		claims_ask(s);
	return accounts_fit(s, event, b);
}
