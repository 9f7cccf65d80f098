/* See notify.h. */
#include "daemon/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include "daemon/core/warden.h"
#include "daemon/ground/clock.h"
#include "daemon/target/target.h"

#define LOOK_NS NS_PER_S

struct notify {
	struct host *host;
	struct loop_timer *watchdog, *look;
	char error[300]; /* result of the last reload; "" = none */
	char said[WARDEN_STATUS_MAX];
};

void notify_report(unsigned what, const char *status)
{
	sd_notifyf(0, "%s%s%s%s%s%s", what & WARDEN_TELL_READY ? "READY=1\n" : "",
		   what & WARDEN_TELL_RELOADING ? "RELOADING=1\n" : "",
		   what & WARDEN_TELL_STOPPING ? "STOPPING=1\n" : "",
		   what & WARDEN_TELL_WATCHDOG ? "WATCHDOG=1\n" : "", status ? "STATUS=" : "",
		   status ? status : "");
}

static void notify_send(unsigned what, const char *status)
{
	if (warden_report(what, status) == -ENOENT)
		notify_report(what, status);
}

/* This is called only if the loop turns, and it waits for the warden's answer: so the watchdog
 * covers both. */
static void on_watchdog(void *userdata)
{
	(void)userdata;
	notify_send(WARDEN_TELL_WATCHDOG, NULL);
}

static void count_states(struct host *h, unsigned n[TARGET_STATE_COUNT])
{
	struct targets *all = host_targets(h);

	for (struct target *t = targets_next(all, NULL); t; t = targets_next(all, t))
		n[t->state]++;
}

/* "12 JVMs streaming, 1 failed", with the states of `kindling status` */
static void make_text(const struct notify *n, char *text, size_t size)
{
	unsigned count[TARGET_STATE_COUNT] = { 0 }, waiting, len;

	count_states(n->host, count);
	waiting = count[TARGET_FOUND] + count[TARGET_INJECTING];
	len = (unsigned)snprintf(text, size, "%u JVM%s streaming", count[TARGET_STREAMING],
				 count[TARGET_STREAMING] == 1 ? "" : "s");
	if (waiting)
		len += (unsigned)snprintf(text + len, size - len, ", %u waiting", waiting);
	if (count[TARGET_FAILED])
		len += (unsigned)snprintf(text + len, size - len, ", %u failed",
					  count[TARGET_FAILED]);
	if (count[TARGET_EXCLUDED])
		len += (unsigned)snprintf(text + len, size - len, ", %u excluded",
					  count[TARGET_EXCLUDED]);
	if (n->error[0])
		(void)snprintf(text + len, size - len, "; old settings stay in force: %s",
			       n->error);
}

static void notify_send_status(struct notify *n, unsigned what)
{
	char text[sizeof(n->said)];

	make_text(n, text, sizeof(text));
	if (!what && strcmp(text, n->said) == 0)
		return;
	strcpy(n->said, text);
	notify_send(what, text);
}

static void notify_on_look(void *userdata)
{
	notify_send_status(userdata, 0);
}

int notify_new(struct loop *loop, struct host *host, struct notify **ret)
{
	CLEANUP(notify_freep) struct notify *n = calloc(1, sizeof(*n));
	uint64_t watchdog_us = 0;
	int r = 0;

	if (!n)
		return -ENOMEM;
	n->host = host;
	if (sd_watchdog_enabled(0, &watchdog_us) > 0)
		r = loop_timer_add(loop, 0, watchdog_us * 1000 / 3, on_watchdog, n, &n->watchdog);
	if (r == 0 && getenv("NOTIFY_SOCKET"))
		r = loop_timer_add(loop, LOOK_NS, LOOK_NS, notify_on_look, n, &n->look);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(n);
	return 0;
}

struct notify *notify_free(struct notify *n)
{
	if (!n)
		return NULL;
	loop_timer_free(n->watchdog);
	loop_timer_free(n->look);
	free(n);
	return NULL;
}

void notify_ready(struct notify *n)
{
	notify_send_status(n, WARDEN_TELL_READY);
}

void notify_stopping(void)
{
	notify_send(WARDEN_TELL_STOPPING, "leaving the JVMs");
}

void notify_reloading(void)
{
	notify_send(WARDEN_TELL_RELOADING, NULL);
}

void notify_reloaded(struct notify *n, const char *error)
{
	snprintf(n->error, sizeof(n->error), "%s", error ? error : "");
	notify_send_status(n, WARDEN_TELL_READY);
}
