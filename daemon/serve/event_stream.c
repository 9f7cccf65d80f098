/*
 * /v1/events: samples and waits as they arrive, one JSON object per line. A client that reads too
 * slowly loses events, so that it cannot take the daemon's memory; a line of its own says how many.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/serve/serve_priv.h"

#define BUFFER_MAX (4u << 20)

struct watcher {
	struct request *request;
	struct host *host;
	struct host_listener listener;
	struct selection selected; /* selected.n 0: all JVMs, also those that start later */
	uint32_t left; /* selected targets that have not ended */
	bool cpu, lock, offcpu; /* the requested events */
	bool open, idle; /* also waits in progress, waits for work */
	uint64_t min_ns; /* shorter waits are left out */
	struct text_out buffer;
	size_t sent;
	uint64_t dropped;
	bool over; /* the daemon is ending */
};

static bool serve_events_wanted(const struct watcher *w, const struct target *t)
{
	for (uint32_t i = 0; i < w->selected.n; i++)
		if (w->selected.pids[i] == (uint32_t)t->jvm.pid &&
		    w->selected.start_times[i] == t->jvm.start_time)
			return true;
	return w->selected.n == 0;
}

static bool serve_events_wants(void *userdata, const struct target *t)
{
	return serve_events_wanted(userdata, t);
}

static void serve_events_wake(struct watcher *w)
{
	if (w->request->suspended)
		serve_resume(w->request);
}

/* A JVM has ended. After the end of the last selected one the stream ends. */
static void on_gone(void *userdata, struct target *t)
{
	struct watcher *w = userdata;
	char reason[400];

	if (!serve_events_wanted(w, t) ||
	    (!w->selected.n && !t->stream)) /* it was never profiled */
		return;
	if (w->left)
		w->left--;
	snprintf(reason, sizeof(reason), "process %d (%s) has ended", t->jvm.pid, t->jvm.name);
	json_begin_object(&w->buffer, NULL);
	json_add_string(&w->buffer, "event", "end");
	json_add_i64(&w->buffer, "pid", t->jvm.pid);
	json_add_string(&w->buffer, "reason", reason);
	if (w->selected.n)
		json_add_u64(&w->buffer, "left", w->left);
	json_end_object(&w->buffer);
	json_end_line(&w->buffer);
	serve_events_wake(w);
}

/* Reports the selected JVMs that had ended before the request. */
static void serve_events_begin(struct watcher *w)
{
	struct target *t = NULL;

	w->left = w->selected.n;
	while (w->selected.n && (t = targets_next(host_targets(w->host), t)))
		if (t->state == TARGET_GONE)
			on_gone(w, t);
}

/* Is there room for one more event? Once there is, the number of lost ones comes first. */
static bool serve_events_has_room(struct watcher *w)
{
	if (w->buffer.len - w->sent > BUFFER_MAX) {
		w->dropped++;
		return false;
	}
	if (w->dropped) {
		json_begin_object(&w->buffer, NULL);
		json_add_string(&w->buffer, "event", "dropped");
		json_add_u64(&w->buffer, "count", w->dropped);
		json_end_object(&w->buffer);
		json_end_line(&w->buffer);
	}
	w->dropped = 0;
	return true;
}

static void serve_events_on_sample(void *userdata, struct target *t, const struct stream_sample *s,
				   uint64_t real_ns)
{
	struct watcher *w = userdata;

	if (!w->cpu || !serve_events_wanted(w, t) || !serve_events_has_room(w))
		return;
	event_sample(&w->buffer, w->host, t, s, real_ns);
	serve_events_wake(w);
}

static void serve_events_on_lock(void *userdata, struct target *t, const struct stream_lock *l,
				 bool idle, uint64_t real_ns)
{
	struct watcher *w = userdata;

	if (!w->lock || !serve_events_wanted(w, t) || (idle && !w->idle) ||
	    l->duration_ns < w->min_ns || (l->flags & WIRE_LOCK_OPEN && !w->open) ||
	    !serve_events_has_room(w))
		return;
	event_lock(&w->buffer, w->host, t, l, idle, real_ns);
	serve_events_wake(w);
}

static void serve_events_on_offcpu(void *userdata, struct target *t, const struct offcpu_event *e,
				   uint64_t real_ns)
{
	struct watcher *w = userdata;

	if (!w->offcpu || !serve_events_wanted(w, t) || (e->idle && !w->idle) ||
	    e->duration_ns < w->min_ns || !serve_events_has_room(w))
		return;
	event_offcpu(&w->buffer, w->host, t, e, real_ns);
	serve_events_wake(w);
}

/* MHD asks for more bytes. Without any the connection is suspended until the next event. */
static ssize_t read_more(void *userdata, uint64_t position, char *buf, size_t max)
{
	struct watcher *w = userdata;
	size_t n = w->buffer.len - w->sent;

	(void)position;
	if (n == 0 && (w->over || (w->selected.n && !w->left)))
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		if (!w->request->suspended)
			serve_suspend(w->request);
		return 0;
	}
	if (n > max)
		n = max;
	memcpy(buf, w->buffer.p + w->sent, n);
	w->sent += n;
	if (w->sent == w->buffer.len)
		w->sent = w->buffer.len = 0;
	return (ssize_t)n;
}

static void serve_events_on_end(void *userdata)
{
	struct watcher *w = userdata;

	w->over = true;
	json_begin_object(&w->buffer, NULL);
	json_add_string(&w->buffer, "event", "end");
	json_add_string(&w->buffer, "reason", "kindlingd is stopping");
	json_end_object(&w->buffer);
	json_end_line(&w->buffer);
}

static void serve_events_forget(void *userdata)
{
	struct watcher *w = userdata;

	host_unlisten(w->host, &w->listener);
	free(w->buffer.p);
	free(w);
}

/* Sets the requested events from a list such as "cpu,lock"; an empty one means cpu. false: an
 * unknown word. */
static bool parse_events(struct watcher *w, const char *list)
{
	w->cpu = !list;
	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n == 3 && strncmp(list, "cpu", n) == 0)
			w->cpu = true;
		else if (n == 4 && strncmp(list, "lock", n) == 0)
			w->lock = true;
		else if (n == 6 && strncmp(list, "offcpu", n) == 0)
			w->offcpu = true;
		else
			return false;
		list += n + (list[n] == ',');
	}
	return w->cpu || w->lock || w->offcpu;
}

/* Parses the request. On -EINVAL, -ENOENT and -ENODATA the error has been answered. */
static int serve_events_parse(struct request *r, struct watcher *w)
{
	const char *event = argument(r, "event"), *min = argument(r, "min");
	unsigned events;
	char why[400];

	if (!parse_events(w, event)) {
		(void)answer_error(
			r, 400,
			"the event must be cpu, lock, offcpu, or several with commas, not \"%s\"",
			event);
		return -EINVAL;
	}
	if (min && !parse_duration(min, &w->min_ns)) {
		(void)answer_error(r, 400, "min must be a duration such as 5ms");
		return -EINVAL;
	}
	w->open = argument_is_set(r, "open");
	w->idle = argument_is_set(r, "idle");
	if (api_select(r, &w->selected) < 0)
		return -ENOENT;
	events = (w->cpu ? 1u << WIRE_EVENT_CPU : 0) | (w->lock ? 1u << WIRE_EVENT_LOCK : 0) |
		 (w->offcpu ? 1u << WIRE_EVENT_OFFCPU : 0);
	if (!api_not_collected(r->serve->host, &w->selected, events, why, sizeof(why)))
		return 0;
	(void)answer_error(r, 409, "%s", why);
	return -ENODATA;
}

enum MHD_Result serve_events(struct request *r)
{
	struct MHD_Response *response;
	enum MHD_Result result;
	struct watcher *w;

	w = calloc(1, sizeof(*w));
	if (!w)
		return MHD_NO;
	if (serve_events_parse(r, w) < 0) {
		free(w);
		return MHD_YES;
	}
	w->request = r;
	w->host = r->serve->host;
	w->listener.wants = serve_events_wants;
	w->listener.on_sample = serve_events_on_sample;
	w->listener.on_lock = serve_events_on_lock;
	w->listener.on_offcpu = serve_events_on_offcpu;
	w->listener.on_gone = on_gone;
	w->listener.userdata = w;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64 * 1024, read_more, w,
						     serve_events_forget);
	if (!response) {
		free(w);
		return MHD_NO;
	}
	serve_events_begin(w);
	host_listen(w->host, &w->listener);
	MHD_add_response_header(response, "Content-Type", "application/x-ndjson");
	result = MHD_queue_response(r->connection, 200, response);
	if (result == MHD_YES) {
		r->on_end = serve_events_on_end;
		r->end_userdata = w;
		(void)MHD_set_connection_option(r->connection, MHD_CONNECTION_OPTION_TIMEOUT,
						STREAM_IDLE_S);
	}
	MHD_destroy_response(response);
	r->answered = true;
	return result;
}
