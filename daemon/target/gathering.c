/* See gathering.h. */
#include "daemon/target/gathering.h"

#include "daemon/target/target_priv.h"

/* ms between two reads. Agents write every 100 ms, and at once when a thread has its first sample,
 * so that one whose threads are short-lived writes thirty times a second. What they write in this
 * time becomes one message. With 50 JVMs of 100 samples a second each 150 ms save a quarter of the
 * daemon's CPU time, and 300 ms half of the time of the receivers; of one JVM with 250 samples a
 * second 150 ms save a third of both. */
#define GATHER_MS      150
#define GATHER_LONG_MS 300
/* A JVM that sends this many messages in a second, or more, is busy. If an agent always has samples
 * its receiver sends seven a second, or three while it gathers for longer. */
#define BUSY_MESSAGES	   3
#define BUSY_MESSAGES_LONG 2
/* With BUSY_LOTS busy JVMs, and until there are fewer than BUSY_LOTS_FEW, gathering takes longer. */
#define BUSY_LOTS     40
#define BUSY_LOTS_FEW 32

uint32_t gathering_choose(uint32_t now_ms, unsigned busy)
{
	return busy >= (now_ms == GATHER_LONG_MS ? BUSY_LOTS_FEW : BUSY_LOTS) ? GATHER_LONG_MS
									      : GATHER_MS;
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
	unsigned busy = 0,
		 least = table->gather_ms == GATHER_LONG_MS ? BUSY_MESSAGES_LONG : BUSY_MESSAGES;

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
