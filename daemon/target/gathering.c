/* See gathering.h. */
#include "daemon/target/gathering.h"

#include "daemon/target/target_priv.h"

/* ms. Agents write every 100 ms: in this time their records become one message, which for 50
 * JVMs with 100 samples a second saves a quarter of the CPU time. */
#define GATHER_MS 150
/* Messages in a second that make a JVM busy. An agent with samples all the time sends ten, or,
 * while receivers gather, seven. */
#define BUSY_MESSAGES 3
/* Gathering begins with so many busy JVMs, and ends when there are fewer than BUSY_FEW. */
#define BUSY_MANY 10
#define BUSY_FEW  8

uint32_t gathering_choose(uint32_t now_ms, unsigned busy)
{
	return busy >= (now_ms ? BUSY_FEW : BUSY_MANY) ? GATHER_MS : 0;
}

static void gathering_tell(struct target *t)
{
	struct target_gathering *g = &t->priv->gathering;
	uint32_t ms = g->followed ? 0 : t->priv->table->gather_ms;

	if (t->stream && ms != g->told_ms && receiver_gather(t, ms) == 0)
		g->told_ms = ms;
}

void gathering_begin(struct target *t)
{
	t->priv->gathering.messages = 0;
	t->priv->gathering.told_ms = 0;
}

void gathering_on_message(struct target *t)
{
	t->priv->gathering.messages++;
}

void gathering_on_second(struct targets *table)
{
	unsigned busy = 0;

	for (struct target *t = table->first; t; t = t->priv->next) {
		busy += t->priv->gathering.messages >= BUSY_MESSAGES;
		t->priv->gathering.messages = 0;
	}
	table->gather_ms = gathering_choose(table->gather_ms, busy);
	for (struct target *t = table->first; t; t = t->priv->next)
		gathering_tell(t);
}

void target_follow(struct target *t, bool followed)
{
	t->priv->gathering.followed = followed;
	gathering_tell(t);
}
