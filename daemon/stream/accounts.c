/*
 * The accounting of a stream, see struct stream_accounts: the agent's counters of what it took,
 * wrote and dropped must be consistent, and must agree with what arrived.
 */
#include "daemon/stream/stream_priv.h"

#include <errno.h>
#include <string.h>

#define SESSIONS_MAX 3 /* HELLOs in one stream */
#define ACCOUNTS_MAX \
	(1ull << 61) /* limit of each sum in one session: 73 years of CPU time, in ns */
_Static_assert(2 * ACCOUNTS_MAX <= UINT64_MAX / SESSIONS_MAX, "no sum over sessions can overflow");

static const enum wire_drop full_causes[ACCOUNTS_FULL_COUNT] = {
	[ACCOUNTS_FULL_RING] = WIRE_DROP_RING_FULL,
	[ACCOUNTS_FULL_PIPE] = WIRE_DROP_PIPE_FULL,
};

/* Samples that arrived: the delivered ones, and those refused as implausible. */
static uint64_t accounts_arrived(const struct stream_accounts *b)
{
	return b->delivered + b->dropped[WIRE_DROP_IMPLAUSIBLE].n;
}

static uint64_t accounts_arrived_weight(const struct stream_accounts *b)
{
	return b->delivered_weight + b->dropped[WIRE_DROP_IMPLAUSIBLE].weight;
}

/* While every sum of a session stays below ACCOUNTS_MAX, no sum can overflow, whatever an agent
 * sends. */
int accounts_deliver(struct stream *s, enum wire_event event, uint64_t weight, struct fault *f)
{
	struct stream_accounts *b = &s->counts.of[event];

	if (weight >= ACCOUNTS_MAX - accounts_arrived_weight(b))
		return fault_set(f, EBADMSG, FAULT_STREAM,
				 "the agent's counters: more than any machine can run");
	if (!claims_allow(s, event, weight)) {
		b->dropped[WIRE_DROP_IMPLAUSIBLE].n++;
		b->dropped[WIRE_DROP_IMPLAUSIBLE].weight += weight;
		return 0;
	}
	b->delivered++;
	b->delivered_weight += weight;
	return 1;
}

/* Defines a function that compares one event's counters of two LEDGERs, @then and the later
 * @now, of which @arrived_then and @arrived had come by their times. It returns what is wrong,
 * or NULL. Expanded once for the numbers and once for the weights. */
#define WRONG_ACCOUNTS(name, taken, written, part)                                                 \
	static const char *name(const struct wire_accounts *now, const struct wire_accounts *then, \
				uint64_t arrived, uint64_t arrived_then)                           \
	{                                                                                          \
		uint64_t sum = now->written;                                                       \
                                                                                                   \
		if (now->taken >= ACCOUNTS_MAX || now->written > now->taken)                       \
			return "written is more than taken, or taken is too large";                \
		for (int i = 0; i < WIRE_DROP_COUNT; i++) {                                        \
			if (now->drop[i].part > now->taken - sum)                                  \
				return "dropped is more than was taken";                           \
			if (now->drop[i].part < then->drop[i].part)                                \
				return "a counter went backwards";                                 \
			sum += now->drop[i].part;                                                  \
		}                                                                                  \
		if (now->taken != sum)                                                             \
			return "taken is not written + dropped";                                   \
		if (now->written < then->written)                                                  \
			return "a counter went backwards";                                         \
		/* losses never decrease */                                                        \
		if (now->written - then->written < arrived - arrived_then)                         \
			return "more arrived than was written";                                    \
		return NULL;                                                                       \
	}

WRONG_ACCOUNTS(wrong_numbers, taken, written, n)
WRONG_ACCOUNTS(wrong_weights, taken_weight, written_weight, weight)

/* Attributes what the agent has dropped for want of room since the last LEDGER to the held-back
 * reader. @now has been checked: no counter has decreased. */
static void accounts_add_quota(struct stream *s, const struct wire_ledger *now)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		for (int i = 0; i < ACCOUNTS_FULL_COUNT; i++) {
			enum wire_drop cause = full_causes[i];
			const struct wire_accounts *then = &s->counts.ledger.accounts[e];

			s->quota[e][i].n += now->accounts[e].drop[cause].n - then->drop[cause].n;
			s->quota[e][i].weight +=
				now->accounts[e].drop[cause].weight - then->drop[cause].weight;
		}
}

int accounts_on_ledger(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	struct stream_counts *c = &s->counts;
	struct wire_ledger l;

	if (wire_get_ledger(frame, &l) < 0)
		return fault_set(f, EBADMSG, FAULT_STREAM, "a LEDGER frame is malformed");
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct wire_accounts *now = &l.accounts[e], *then = &c->ledger.accounts[e];
		const char *wrong =
			wrong_numbers(now, then, accounts_arrived(&c->of[e]), s->at_ledger[e].n);

		if (!wrong)
			wrong = wrong_weights(now, then, accounts_arrived_weight(&c->of[e]),
					      s->at_ledger[e].weight);
		if (!wrong && !claims_allow_accounts(s, (enum wire_event)e, now))
			wrong = "more than the process can have done";
		if (wrong)
			return fault_set(f, EBADMSG, FAULT_STREAM, "the agent's counters of %s: %s",
					 wire_event_names[e], wrong);
	}
	if (s->held_back)
		accounts_add_quota(s, &l);
	c->ledger = l;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		s->at_ledger[e].n = accounts_arrived(&c->of[e]);
		s->at_ledger[e].weight = accounts_arrived_weight(&c->of[e]);
	}
	if (s->ops.on_ledger)
		s->ops.on_ledger(s->userdata);
	return 0;
}

static void accounts_count(const struct stream *s, enum wire_event event,
			   struct stream_accounts *ret)
{
	const struct wire_accounts *reported = &s->counts.ledger.accounts[event];
	const struct stream_accounts *past = &s->past.of[event];
	uint64_t n = s->at_ledger[event].n, weight = s->at_ledger[event].weight;

	/* what arrived after the last LEDGER has certainly been taken, too */
	ret->taken = past->taken + reported->taken + accounts_arrived(ret) - n;
	ret->taken_weight =
		past->taken_weight + reported->taken_weight + accounts_arrived_weight(ret) - weight;
	ret->delivered += past->delivered;
	ret->delivered_weight += past->delivered_weight;
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		ret->dropped[i].n += past->dropped[i].n + reported->drop[i].n;
		ret->dropped[i].weight += past->dropped[i].weight + reported->drop[i].weight;
	}
	for (int i = 0; i < ACCOUNTS_FULL_COUNT; i++) {
		ret->dropped[full_causes[i]].n -= s->quota[event][i].n;
		ret->dropped[full_causes[i]].weight -= s->quota[event][i].weight;
		ret->dropped[WIRE_DROP_QUOTA].n += s->quota[event][i].n;
		ret->dropped[WIRE_DROP_QUOTA].weight += s->quota[event][i].weight;
	}
	ret->lost = past->lost + reported->written - n;
	ret->lost_weight = past->lost_weight + reported->written_weight - weight;
}

void stream_hold_back(struct stream *s, bool held_back)
{
	s->held_back = held_back;
}

void stream_counts(const struct stream *s, struct stream_counts *ret)
{
	*ret = s->counts;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		accounts_count(s, e, &ret->of[e]);
}

const struct wire_ledger *stream_ledger(const struct stream *s)
{
	return &s->counts.ledger;
}

int accounts_begin_session(struct stream *s, struct fault *f)
{
	uint64_t bytes = s->counts.bytes, frames = s->counts.frames;
	struct stream_counts until_now;

	if (++s->sessions > SESSIONS_MAX)
		return fault_set(f, EBADMSG, FAULT_STREAM, "HELLO came more than %d times",
				 SESSIONS_MAX);
	if (!s->greeted)
		return 0;
	stream_counts(s, &until_now);
	s->past = until_now;
	memset(&s->counts, 0, sizeof(s->counts));
	s->counts.bytes = bytes;
	s->counts.frames = frames;
	memset(s->at_ledger, 0, sizeof(s->at_ledger));
	memset(s->quota, 0, sizeof(s->quota));
	return 0;
}
