/* See decoding.h. */
#include "daemon/target/decoding.h"

#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/target/decode_budget.h"
#include "daemon/target/target_priv.h"

/* A target earns in a second: BASE_NS even if its process uses no CPU time, */
#define BASE_NS	    (5 * NS_PER_MS / 2)
#define WALL_NS	    (50 * NS_PER_MS) /* WALL_NS while wall-clock samples are collected, */
#define CPU_PART    50 /* 1/CPU_PART of the CPU time that its process uses, */
#define RECORDED_NS 10000 /* RECORDED_NS for each sample that a recording may bring, */
#define OFFCPU_NS   20000 /* and OFFCPU_NS for each signal that the kernel sent it. */
#define RESERVE_NS  (5 * NS_PER_MS) /* a tenant's reserve earns this in a second */
/* A target keeps at most what all targets together may spend in KEPT_S seconds, a reserve twice
 * that; with more than KEPT_TARGETS targets these share KEPT_TARGETS times as much. A target
 * that earns much keeps what it earns in KEPT_EARNED_S seconds. */
#define KEPT_S	      1
#define KEPT_TARGETS  10
#define KEPT_EARNED_S 2
/* Decoding the rest of the pipe may exceed the budget by these amounts: at a detach, when LEDGER
 * and BYE come behind much other data, */
#define DETACH_NS  (300 * NS_PER_MS)
#define END_NS	   (20 * NS_PER_MS) /* and at the end of a process, for its last samples. */
#define MESSAGE_NS 10000 /* estimated cost of the receiver and of epoll for a message */
#define PASSED_MAX (10 * NS_PER_S)
/* A target without budget may pass on SIP_BYTES every SIP_NS, so that neither its agent nor its
 * receiver takes the daemon for dead. */
#define SIP_BYTES    4096
#define SIP_NS	     (6 * NS_PER_S)
#define HELD_NS	     (15 * NS_PER_S) /* the agent reports its drops with some delay */
#define EPISODE_NS   (60 * NS_PER_S)
#define DELAY_MIN_NS (2 * NS_PER_S) /* a delay below this is usual */
#define COST_BYTES   (256 * 1024)
#define BYTE_NS	     200 /* until the real cost of a byte is known */

static uint64_t decoding_during(uint64_t ns_per_s, uint64_t passed_ns)
{
	return ns_per_s * (passed_ns / 1000) / (NS_PER_S / 1000);
}

static uint64_t decoding_bound(const struct targets *table)
{
	return table->config->decode_cpu_permille * (NS_PER_S / 1000);
}

static uint64_t decoding_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t decoding_kept_ns(const struct targets *table)
{
	uint64_t ns = KEPT_S * decoding_bound(table);

	return table->streams > KEPT_TARGETS ? ns * KEPT_TARGETS / table->streams : ns;
}

static uint64_t decoding_reserve_kept_ns(const struct targets *table)
{
	return 2 * decoding_kept_ns(table);
}

/* ---- holding back ---------------------------------------------------------------------------- */

static void decoding_allow(struct target *t, uint32_t bytes)
{
	struct target_decoding *d = &t->priv->decoding;

	if (receiver_allow(t, bytes) < 0)
		return; /* the socket is full: the next message or second tries again */
	d->bounded = bytes != RECEIVE_UNBOUNDED;
	d->allowed = bytes;
	d->came = 0;
	d->allowed_mono_ns = clock_mono_ns();
}

/* The number of bytes that the target can pay for, at what bytes have cost lately. */
static uint32_t decoding_affordable(const struct target_decoding *d)
{
	uint64_t ns_per_kib = d->spent_ns / (d->bytes / 1024 + 1) + 1;
	uint64_t bytes = (uint64_t)d->left_ns * 1024 / ns_per_kib;

	if (bytes < SIP_BYTES)
		return SIP_BYTES;
	return bytes < RECEIVE_UNBOUNDED ? (uint32_t)bytes : RECEIVE_UNBOUNDED - 1;
}

static void decoding_hold(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;
	uint64_t now = clock_mono_ns();

	if (!d->held_mono_ns || now - d->held_mono_ns > EPISODE_NS)
		TARGET_LOG(WARNING, t, "target.held_back", "pid=%d decoded_ms=%llu", t->jvm.pid,
			   (unsigned long long)(d->total_ns / NS_PER_MS));
	d->held_mono_ns = now;
	decoding_allow(t, 0);
}

static void decoding_release(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;

	if (d->left_ns > 0 && d->came < d->allowed / 2)
		decoding_allow(t, RECEIVE_UNBOUNDED);
	else if (d->left_ns > 0)
		decoding_allow(t, decoding_affordable(d));
	else if (clock_mono_ns() - d->allowed_mono_ns > SIP_NS)
		decoding_allow(t, SIP_BYTES);
}

bool decoding_is_held(const struct target *t)
{
	uint64_t held = t->priv->decoding.held_mono_ns;

	return held && clock_mono_ns() - held < HELD_NS;
}

/* ---- paying ---------------------------------------------------------------------------------- */

void decoding_new_tenant(struct target *t)
{
	t->priv->tenant->decoding.reserve_ns = (int64_t)decoding_reserve_kept_ns(t->priv->table);
}

void decoding_begin(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;

	d->bounded = false;
	if (d->cpu_ns)
		return;
	d->cpu_ns = possible_cpu_ns(t); /* earlier CPU time earns nothing */
	d->bytes = COST_BYTES / 4;
	d->spent_ns = d->bytes * BYTE_NS;
}

static void decoding_spend(struct target *t, uint64_t cpu_ns)
{
	struct target_decoding *d = &t->priv->decoding;

	d->total_ns += cpu_ns;
	d->spent_ns += cpu_ns;
	if (!decoding_bound(t->priv->table))
		return;
	decode_spend(&d->left_ns, &t->priv->tenant->decoding.reserve_ns, cpu_ns);
	if (d->left_ns < 0 && (!d->bounded || d->allowed))
		decoding_hold(t);
	else if (d->bounded && d->came + SIP_BYTES > d->allowed)
		d->held_mono_ns = clock_mono_ns();
}

void decoding_pay(struct target *t, uint64_t cpu_ns, size_t bytes)
{
	struct target_decoding *d = &t->priv->decoding;

	d->bytes += bytes;
	d->came += bytes;
	d->uncharged += bytes;
	decoding_spend(t, cpu_ns + MESSAGE_NS);
}

void targets_charge(struct targets *table, uint64_t cpu_ns)
{
	uint64_t all = 0;

	for (const struct target *t = table->first; t; t = t->priv->next)
		all += t->priv->decoding.uncharged;
	for (struct target *t = table->first; t; t = t->priv->next) {
		uint64_t own = t->priv->decoding.uncharged;

		t->priv->decoding.uncharged = 0;
		if (own && t->stream)
			decoding_spend(t, (uint64_t)((double)cpu_ns * (double)own / (double)all));
	}
}

void decoding_detach(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;

	if (d->left_ns < (int64_t)DETACH_NS)
		d->left_ns = DETACH_NS;
	if (d->bounded)
		decoding_allow(t, decoding_affordable(d));
}

/* Sets the limit before the receiver drains the pipe: while it drains, it reads no messages. */
void decoding_drain(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;
	int64_t *reserve = &t->priv->tenant->decoding.reserve_ns;

	if (!decoding_bound(t->priv->table))
		return;
	d->left_ns = (d->left_ns > 0 ? d->left_ns : 0) + (int64_t)END_NS;
	if (*reserve > 0) {
		d->left_ns += *reserve;
		*reserve = 0;
	}
	decoding_allow(t, decoding_affordable(d));
}

void decoding_end(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;
	int64_t *reserve = &t->priv->tenant->decoding.reserve_ns, none = 0;

	if (d->left_ns < 0)
		decode_spend(reserve, &none, (uint64_t)-d->left_ns);
	else if (d->left_ns > (int64_t)END_NS) /* gives unspent time back to the reserve */
		decode_earn(reserve, (uint64_t)d->left_ns - END_NS,
			    decoding_reserve_kept_ns(t->priv->table));
	d->left_ns = 0;
}

/* ---- earning --------------------------------------------------------------------------------- */

/* The CPU time that the process has used since the target last asked. */
static uint64_t decoding_used(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;
	uint64_t cpu_ns = possible_cpu_ns(t), ns = cpu_ns > d->cpu_ns ? cpu_ns - d->cpu_ns : 0;

	d->cpu_ns = cpu_ns;
	return ns;
}

/* The signals for times off the CPU, by the kernel's count, since the target last asked. */
static uint64_t decoding_signals(struct target *t)
{
	struct target_decoding *d = &t->priv->decoding;
	uint64_t n = t->offcpu_signals > d->signals ? t->offcpu_signals - d->signals : 0;

	d->signals = t->offcpu_signals;
	return n;
}

/* The additional budget for a recording, which an operator asked for and can stop. */
static uint64_t decoding_recorded_ns(const struct target *t, uint64_t cpu_ns, uint64_t passed_ns)
{
	uint64_t ns = 0;

	if (t->no_budget && t->interval_ns)
		ns += cpu_ns / t->interval_ns * RECORDED_NS;
	if (target_asked_events(t) & 1u << WIRE_EVENT_WALL)
		ns += decoding_during(WALL_NS, passed_ns);
	return ns;
}

/* Computes how much the target asks for. A target that already has nearly all that it may keep
 * asks for nothing, which saves reading its CPU clock. */
static void decoding_ask(struct target *t, uint64_t passed_ns)
{
	struct target_decoding *d = &t->priv->decoding;
	uint64_t bound = decoding_during(decoding_bound(t->priv->table), passed_ns);
	uint64_t kept = decoding_kept_ns(t->priv->table), cpu_ns, recorded, room;

	d->asked_ns = 0;
	d->most_ns = kept;
	if (!t->stream || d->left_ns > (int64_t)(kept - kept / 8))
		return;
	cpu_ns = decoding_used(t);
	recorded = decoding_recorded_ns(t, cpu_ns, passed_ns);
	d->asked_ns = decoding_during(BASE_NS, passed_ns) + cpu_ns / CPU_PART +
		      decoding_signals(t) * OFFCPU_NS;
	d->cut = d->asked_ns > bound;
	d->asked_ns = decoding_least(d->asked_ns, bound);
	if (d->most_ns < KEPT_EARNED_S * (d->asked_ns + recorded))
		d->most_ns = KEPT_EARNED_S * (d->asked_ns + recorded);
	decode_earn(&d->left_ns, recorded, d->most_ns);
	room = d->left_ns < (int64_t)d->most_ns ? (uint64_t)((int64_t)d->most_ns - d->left_ns) : 0;
	if (d->asked_ns > room)
		d->asked_ns = room;
	d->part_ns = recorded;
}

static void decoding_ask_all(struct targets *table, uint64_t passed_ns)
{
	table->streams = 0;
	for (const struct target *t = table->first; t; t = t->priv->next)
		table->streams += t->stream != NULL;
	for (struct tenant *n = table->tenants; n; n = n->next) {
		struct tenant_decoding *d = &n->decoding;

		d->reserve_asked_ns = decoding_during(RESERVE_NS, passed_ns);
		if (d->reserve_ns >= (int64_t)decoding_reserve_kept_ns(table))
			d->reserve_asked_ns = 0;
		d->asked_ns = d->reserve_asked_ns;
		d->level_ns = UINT64_MAX;
	}
	for (struct target *t = table->first; t; t = t->priv->next) {
		decoding_ask(t, passed_ns);
		t->priv->tenant->decoding.asked_ns += t->priv->decoding.asked_ns;
	}
}

/* Sets the most that each of the tenant's targets gets, if the tenant's demands exceed
 * @level_ns. */
static void decoding_share_in_tenant(struct targets *table, struct tenant *tenant,
				     uint64_t level_ns)
{
	static uint64_t asked[NAMED_MAX + 1];
	unsigned n = 0;

	if (tenant->decoding.asked_ns <= level_ns)
		return;
	asked[n++] = tenant->decoding.reserve_asked_ns;
	for (struct target *t = table->first; t && n < ARRAY_SIZE(asked); t = t->priv->next)
		if (t->priv->tenant == tenant && t->priv->decoding.asked_ns)
			asked[n++] = t->priv->decoding.asked_ns;
	tenant->decoding.level_ns = decode_level(asked, n, level_ns);
}

static void decoding_share(struct targets *table, uint64_t bound_ns)
{
	static uint64_t asked[NAMED_MAX + 1];
	unsigned n = 0;
	uint64_t level;

	for (struct tenant *t = table->tenants; t && n < ARRAY_SIZE(asked); t = t->next)
		asked[n++] = t->decoding.asked_ns;
	level = decode_level(asked, n, bound_ns);
	for (struct tenant *t = table->tenants; t; t = t->next)
		decoding_share_in_tenant(table, t, level);
}

static void decoding_earn(struct target *t, uint64_t passed_ns)
{
	struct target_decoding *d = &t->priv->decoding;
	uint64_t earned = decoding_least(d->asked_ns, t->priv->tenant->decoding.level_ns);

	if (d->asked_ns) {
		d->cut |= earned < d->asked_ns;
		d->part_ns = (d->part_ns + earned) * 1000 / (passed_ns / NS_PER_MS + 1);
	}
	decode_earn(&d->left_ns, earned, d->most_ns);
	/* it may keep less than before, e.g. because there are more targets now */
	if (t->state == TARGET_STREAMING && !t->priv->ending && d->left_ns > (int64_t)d->most_ns)
		d->left_ns = (int64_t)d->most_ns;
	/* halves the sums, so that recent costs count most */
	if (d->bytes > COST_BYTES) {
		d->spent_ns /= 2;
		d->bytes /= 2;
	}
	if (d->bounded)
		decoding_release(t);
}

/* limits.decode_cpu was removed: releases all receivers. */
static void decoding_release_all(struct targets *table)
{
	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->priv->decoding.bounded)
			decoding_allow(t, RECEIVE_UNBOUNDED);
}

void decoding_on_second(struct targets *table)
{
	uint64_t now = clock_mono_ns(), passed = now - table->decoded_mono_ns;

	table->decoded_mono_ns = now;
	if (!decoding_bound(table)) {
		decoding_release_all(table);
		return;
	}
	/* if more time has passed the daemon did not run: nothing is earned for that */
	passed = decoding_least(passed, PASSED_MAX);
	decoding_ask_all(table, passed);
	decoding_share(table, decoding_during(decoding_bound(table), passed));
	for (struct tenant *n = table->tenants; n; n = n->next)
		decode_earn(&n->decoding.reserve_ns,
			    decoding_least(n->decoding.reserve_asked_ns, n->decoding.level_ns),
			    decoding_reserve_kept_ns(table));
	for (struct target *t = table->first; t; t = t->priv->next)
		decoding_earn(t, passed);
}

/* ---- for status ------------------------------------------------------------------------------ */

uint64_t target_decode_ns(const struct target *t)
{
	return t->priv->decoding.total_ns;
}

/* The agent's drops are counted in LEDGER frames, which wait in the same pipe as the samples: until
 * they are read nobody knows how many there are, only for how long they are missing. The CPU time
 * that they stand for is known: it is what coverage lacks, as the kernel counts the process'. */
static void decoding_add_delay(const struct target *t, char *why, size_t size)
{
	uint64_t newest = t->stream ? stream_newest_ns(t->stream) : 0, now = clock_mono_ns();
	size_t n = strlen(why);

	if (newest && now > newest + DELAY_MIN_NS)
		snprintf(why + n, size - n,
			 ". What is read now is %llu s old; what was dropped since is not counted "
			 "yet: it is what coverage lacks",
			 (unsigned long long)((now - newest) / NS_PER_S));
}

bool target_held_back(const struct target *t, char *why, size_t size)
{
	const struct target_decoding *d = &t->priv->decoding;
	const char *bound =
		d->cut ? "its share of limits.decode_cpu" : "a part of its own CPU time";

	/* the target's share is unknown in its first second */
	if (!decoding_is_held(t) || !d->part_ns || t->state != TARGET_STREAMING)
		return false;
	snprintf(why, size,
		 "decoding its data may take %.2f %% of a CPU (%s); the rest is not read, and "
		 "dropped as quota: choose %s",
		 (double)d->part_ns / 1e7, bound,
		 d->cut ? "longer intervals, or raise it" : "a longer interval or fewer events");
	decoding_add_delay(t, why, size);
	return true;
}
