/*
 * Finds an agent that a previous daemon loaded, and takes it over. A receiver process searches the
 * target's descriptors, because a read of the files behind them may block (docs/decisions/0008).
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include "daemon/ground/log.h"

static void reattach_begin(struct target *t)
{
	const uint8_t *secret =
		secrets_find(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
	const struct config *c = t->priv->table->config;
	uint8_t frame[WIRE_FRAME_MAX];
	int len;

	if (secret)
		memcpy(t->priv->secret, secret, sizeof(t->priv->secret));
	t->priv->session = 0; /* a new session: the agent sends its dictionary again */
	len = session_frame(t, frame, c->cpu_interval_ns, false);
	TARGET_LOG(INFO, t, "target.reattach", "pid=%d", t->jvm.pid);
	session_open(t);
	t->priv->taken_over = true;
	(void)receiver_write(t, frame, (size_t)len);
	exit_watch(t);
	target_set_state(t, TARGET_STREAMING, NULL);
	left_look(t);
	if (t->priv->leave)
		target_leave(t, t->priv->leave_to, &t->priv->leave_why);
}

/* Ends the search for an agent. A receiver that has found none ends by itself. */
static void reattach_end_look(struct target *t)
{
	t->priv->looking = false;
	t->priv->facts.has_agent = false;
	t->priv->timer = loop_timer_free(t->priv->timer);
}

static void reattach_leave(struct target *t)
{
	target_set_state(t, t->priv->leave_to,
			 t->priv->leave_why.code ? &t->priv->leave_why : NULL);
	left_look(t);
}

static void reattach_on_found(void *userdata, uint32_t events)
{
	struct receive_found found = { 0 };
	struct target *t = userdata;
	struct fault f = { 0 };
	size_t len = 0;
	int r;

	(void)events;
	r = receiver_read(t, (uint8_t *)&found, sizeof(found), &len);
	if (r == 0)
		return;
	reattach_end_look(t);
	if (r != RECEIVE_FOUND || len != sizeof(found))
		found = (struct receive_found){ 0 }; /* it died: an attach may show the reason */
	found.sent_away[sizeof(found.sent_away) - 1] = '\0';
	if (found.sent_away[0])
		TARGET_LOG(INFO, t, "target.send_away", "pid=%d version=%s", t->jvm.pid,
			   found.sent_away);
	if (found.found == 1) {
		reattach_begin(t);
		return;
	}
	receiver_stop(t);
	if (t->priv->leave) {
		reattach_leave(t);
	} else if (found.found == 0) {
		target_no_agent(t);
	} else {
		fault_set(&f, EBUSY, FAULT_AGENT, "another kindlingd already profiles this JVM");
		target_busy(t, &f);
	}
}

static void reattach_on_late(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	reattach_end_look(t);
	receiver_stop(t);
	t->priv->table->stuck_total++;
	if (t->priv->leave) {
		reattach_leave(t);
		return;
	}
	fault_set(&f, ETIMEDOUT, FAULT_STREAM,
		  "a descriptor of the JVM does not answer: a read of it has not ended");
	target_busy(t, &f);
}

int session_look(struct target *t)
{
	struct target_priv *p = t->priv;

	if (!p->facts.has_agent || receiver_start(t, -1) < 0)
		return 0;
	p->timer = loop_timer_free(p->timer);
	if (loop_add(p->table->loop, p->socket_fd, EPOLLIN, reattach_on_found, t,
		     &p->socket_source) < 0 ||
	    loop_timer_add(p->table->loop, LOOK_DEADLINE_NS, 0, reattach_on_late, t, &p->timer) <
		    0) {
		receiver_stop(t);
		return 0;
	}
	p->queued = false; /* no attempt may begin meanwhile */
	p->looking = true;
	return 1;
}

void session_leave_idle(struct target *t)
{
	t->priv->timer = loop_timer_free(t->priv->timer);
	/* an agent whose session has failed still sleeps in the JVM */
	t->priv->leave = true;
	if (session_look(t) == 0)
		reattach_leave(t);
}
