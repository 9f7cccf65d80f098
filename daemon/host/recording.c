/* See recording.h. */
#include "daemon/host/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/host/host_priv.h"

struct recording {
	struct host *host;
	uint32_t pid;
	uint64_t start_time;
	struct live_tap *tap;
	uint64_t interval_ns;
	unsigned events;
	char thread[RECORDING_THREAD_MAX]; /* "" = all threads */
	uint64_t lock_min_ns, alloc_interval, wall_interval_ns;
	bool keep_budget;
	bool ended;
};

static struct target *target_of(const struct recording *r)
{
	struct target *t = NULL;

	while ((t = targets_next(r->host->targets, t)))
		if ((uint32_t)t->jvm.pid == r->pid && t->jvm.start_time == r->start_time)
			return t;
	return NULL;
}

/* Sends a START with what the recording needs: its interval, or that of the settings regardless
 * of the agent's budget, and its events. */
static int ask_more(struct recording *r, struct target *t)
{
	t->wanted_events = r->events;
	t->wanted_lock_min_ns = r->lock_min_ns;
	t->wanted_alloc_interval = r->alloc_interval;
	t->wanted_wall_interval_ns = r->wall_interval_ns;
	if (r->events & 1u << WIRE_EVENT_WALL)
		snprintf(t->wanted_threads, sizeof(t->wanted_threads), "%s", r->thread);
	return target_start(t, r->interval_ns ? r->interval_ns : r->host->config->cpu_interval_ns,
			    !r->keep_budget);
}

static void recording_want_nothing(struct target *t)
{
	t->wanted_events = 0;
	t->wanted_lock_min_ns = 0;
	t->wanted_alloc_interval = t->wanted_wall_interval_ns = 0;
	t->wanted_threads[0] = '\0';
}

/* Sends a START with the settings' events and intervals instead of the recording's. */
static void recording_ask_settings(struct recording *r, struct target *t)
{
	recording_want_nothing(t);
	(void)target_start(t, r->host->config->cpu_interval_ns, false);
}

int recording_new(struct host *h, struct target *t, const struct recording_options *o,
		  struct recording **ret)
{
	struct host_entry *e = host_entry_of(h, t);
	struct recording *r;
	int error = -ENOMEM;

	if (o->events & ~target_allowed_events(t))
		return -EACCES;
	r = calloc(1, sizeof(*r));
	/* what came before does not belong to the recording */
	if (e && t->stream) {
		host_take_accounts(h, t);
		host_take_cpu(h, t);
	}
	if (r && e)
		error = live_tap_new(e->source, o->events, o->trace_ids, clock_real_ns(), &r->tap);
	if (error < 0) {
		free(r);
		return error;
	}
	r->host = h;
	r->pid = (uint32_t)t->jvm.pid;
	r->start_time = t->jvm.start_time;
	r->interval_ns = o->interval_ns;
	r->events = o->events;
	r->lock_min_ns = o->lock_min_ns;
	r->alloc_interval = o->alloc_interval;
	r->wall_interval_ns = o->wall_interval_ns;
	r->keep_budget = o->keep_budget;
	snprintf(r->thread, sizeof(r->thread), "%s", o->thread ? o->thread : "");
	if (o->bytes_max)
		profile_limit(live_tap_profile(r->tap), o->bytes_max, 1);
	live_tap_profile(r->tap)->no_budget = !o->keep_budget;
	error = ask_more(r, t);
	if (error < 0) {
		recording_want_nothing(t);
		live_tap_free(r->tap);
		free(r);
		return error;
	}
	/* the receiver passes events on at once, so that the last ones are there at the end */
	e->recorded++;
	host_note_followed(h);
	*ret = r;
	return 0;
}

static void recording_unfollow(struct recording *r, struct target *t)
{
	struct host_entry *e = t->userdata;

	if (!e || !e->recorded)
		return;
	e->recorded--;
	host_note_followed(r->host);
}

void recording_end(struct recording *r)
{
	struct target *t = r->ended ? NULL : target_of(r);

	if (r->ended)
		return;
	r->ended = true;
	if (t) {
		recording_ask_settings(r, t);
		recording_unfollow(r, t);
	}
	if (t && t->stream) {
		host_take_accounts(r->host, t);
		host_take_cpu(r->host, t);
	}
	live_tap_end(r->tap, clock_real_ns());
}

struct recording *recording_free(struct recording *r)
{
	if (!r)
		return NULL;
	recording_end(r);
	live_tap_free(r->tap);
	free(r);
	return NULL;
}

static int copy_filtered(const struct recording *r, bool no_idle, struct profile **ret)
{
	const struct profile_filter filter = { .thread = r->thread[0] ? r->thread : NULL,
					       .events = r->events,
					       .no_idle = no_idle };
	CLEANUP(profile_freep) struct profile *p = NULL;
	int error = profile_new(&p);

	if (error == 0)
		error = profile_merge(p, live_tap_profile(r->tap), &filter);
	if (error < 0)
		return error;
	host_symbolize(r->host, p);
	*ret = TAKE_PTR(p);
	return 0;
}

int recording_profile(const struct recording *r, struct profile **ret)
{
	return copy_filtered(r, false, ret);
}

int recording_working(const struct recording *r, struct profile **ret)
{
	return copy_filtered(r, true, ret);
}

unsigned recording_missing(const struct recording *r)
{
	const struct target *t = r->ended ? NULL : target_of(r);

	return t ? r->events & ~target_events(t) : 0;
}

uint64_t recording_samples(const struct recording *r)
{
	const struct profile *p = live_tap_profile(r->tap);
	CLEANUP(freep) bool *in = r->thread[0] ? calloc(p->n_threads + 1, sizeof(*in)) : NULL;
	uint64_t n = 0;

	if (!in)
		return profile_samples(p);
	for (uint32_t i = 0; i < p->n_threads; i++)
		in[i] = strstr(p->strings[p->threads[i].name], r->thread);
	for (uint32_t i = 0; i < p->n_rows; i++)
		n += in[p->rows[i].thread] ? p->rows[i].samples : 0;
	return n;
}

const char *recording_notes(const struct recording *r, char *buf, size_t size)
{
	const struct target *t = target_of(r);
	size_t n = 0;

	*buf = '\0';
	if (t && t->state == TARGET_STREAMING && t->fault.code)
		n = (size_t)snprintf(buf, size, "%s", t->fault.what);
	for (int i = 0; t && i < NOTES_MAX && n < size; i++)
		if (t->notes[i].step[0])
			n += (size_t)snprintf(buf + n, size - n, "%s%s: %s", n ? "; " : "",
					      t->notes[i].step, t->notes[i].what);
	return buf;
}

bool recording_runs(const struct recording *r, char *buf, size_t size)
{
	const struct target *t = target_of(r);

	if (t && t->state == TARGET_STREAMING)
		return true;
	if (!t || t->state == TARGET_GONE)
		snprintf(buf, size, "the JVM ended");
	else
		snprintf(buf, size, "the JVM is %s%s%s", target_state_names[t->state],
			 t->fault.code ? ": " : "", t->fault.code ? t->fault.what : "");
	return false;
}
