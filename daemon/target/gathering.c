/* See gathering.h. */
#include "daemon/target/gathering.h"

#include "daemon/target/target_priv.h"

/*
 * How long receivers gather, by the number of busy JVMs. Agents write every 100 ms, and at once
 * when a thread has its first sample, so that one whose threads are short-lived writes thirty times
 * a second. What they write in this time becomes one message. With 50 JVMs of 100 samples a second
 * each 150 ms save a quarter of the daemon's CPU time, and 300 ms half of the time of the
 * receivers; of one JVM with 250 samples a second 150 ms save a third of both.
 */
static const struct {
	uint32_t ms; /* between two reads */
	unsigned enter, leave; /* so many busy JVMs or more; until there are fewer than `leave` */
	/* A JVM that sends this many messages in a second, or more, is busy. If an agent always has
	 * samples its receiver sends seven a second, or three, or two. */
	unsigned messages;
} gathering_levels[] = { { 150, 0, 0, 3 }, { 300, 40, 32, 2 }, { 500, 120, 96, 1 } };

uint32_t gathering_choose(uint32_t now_ms, unsigned busy)
{
	size_t i = ARRAY_SIZE(gathering_levels) - 1;

	while (busy < (now_ms >= gathering_levels[i].ms ? gathering_levels[i].leave
							: gathering_levels[i].enter))
		i--;
	return gathering_levels[i].ms;
}

/* How many messages a busy JVM sends in a second. */
static unsigned gathering_least(uint32_t now_ms)
{
	size_t i = ARRAY_SIZE(gathering_levels) - 1;

	while (i && now_ms < gathering_levels[i].ms)
		i--;
	return gathering_levels[i].messages;
}

static void gathering_send(struct target *t)
{
	struct target_gathering *g = &t->priv->gathering;
	uint32_t ms = g->followed ? 0 : t->priv->table->gather_ms;

	if (t->stream && ms != g->sent_ms && receiver_gather(t, ms) == 0)
		g->sent_ms = ms;
}

void gathering_begin(struct target *t)
{
	t->priv->gathering.messages = 0;
	t->priv->gathering.sent_ms = 0;
}

void gathering_on_message(struct target *t)
{
	t->priv->gathering.messages++;
}

void gathering_on_second(struct targets *table)
{
	unsigned busy = 0, least = gathering_least(table->gather_ms);

	for (struct target *t = table->first; t; t = t->priv->next) {
		busy += t->priv->gathering.messages >= least;
		t->priv->gathering.messages = 0;
	}
	table->gather_ms = gathering_choose(table->gather_ms, busy);
	for (struct target *t = table->first; t; t = t->priv->next)
		gathering_send(t);
}

void target_follow(struct target *t, bool followed)
{
	t->priv->gathering.followed = followed;
	gathering_send(t);
}
