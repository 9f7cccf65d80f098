/*
 * /v1/events: samples as they arrive, one JSON object a line. A client that reads too slowly loses
 * events, not the daemon its memory: what did not fit is said in a line of its own.
 */
#include <stdio.h>
#include <string.h>
#include "daemon/report/text_out.h"
#include "daemon/serve/serve_priv.h"

#define BUFFER_MAX (4u << 20)
#define DEPTH_MAX  2048

struct watcher {
	struct request *request;
	struct host *host;
	struct host_listener listener;
	struct selection selected; /* n = 0: all, also those that come later */
	uint32_t left; /* of the selected, that have not ended */
	struct text_out buffer;
	size_t sent;
	uint64_t dropped;
	bool suspended;
};

static bool wanted(const struct watcher *w, const struct target *t)
{
	for (uint32_t i = 0; i < w->selected.n; i++)
		if (w->selected.pids[i] == (uint32_t)t->jvm.pid &&
		    w->selected.start_times[i] == t->jvm.start_time)
			return true;
	return w->selected.n == 0;
}

static void frame_text(struct watcher *w, const struct target *t, const struct stream_frame *f)
{
	const char *name = f->method, *module = strrchr(f->module, '/');
	char buf[1024];

	if (f->kind == WIRE_KIND_NATIVE) {
		name = symbols_lookup(host_symbols(w->host), t->jvm.pid, f->module, f->offset);
		snprintf(buf, sizeof(buf), "[%s+0x%llx]", module ? module + 1 : f->module,
			 (unsigned long long)f->offset);
		text_json(&w->buffer, name ? name : buf);
	} else if (wire_kind_is_method(f->kind) && f->class_name[0]) {
		snprintf(buf, sizeof(buf), "%s.%s", f->class_name, f->method);
		text_json(&w->buffer, buf);
	} else {
		text_json(&w->buffer, name[0] ? name : "[unknown]");
	}
}

static void stack_text(struct watcher *w, const struct target *t, uint32_t leaf)
{
	static uint32_t chain[DEPTH_MAX];
	struct stream_frame f;
	uint32_t n = 0, parent;

	for (uint32_t node = leaf; n < DEPTH_MAX && stream_node(t->stream, node, &f, &parent); node = parent)
		chain[n++] = node;
	for (uint32_t i = n; i-- > 0;) {
		if (i + 1 < n)
			text_put(&w->buffer, ",");
		stream_node(t->stream, chain[i], &f, &parent);
		frame_text(w, t, &f);
	}
}

static void wake(struct watcher *w)
{
	if (!w->suspended)
		return;
	w->suspended = false;
	serve_resume(w->request);
}

/* Its JVM ended; behind the last one of those that were asked for the stream ends. */
static void on_gone(void *userdata, struct target *t)
{
	struct watcher *w = userdata;
	char reason[400];

	if (!wanted(w, t))
		return;
	if (w->left)
		w->left--;
	snprintf(reason, sizeof(reason), "process %d (%s) has ended", t->jvm.pid, t->jvm.name);
	text_printf(&w->buffer, "{\"event\":\"end\",\"pid\":%d,\"reason\":", t->jvm.pid);
	text_json(&w->buffer, reason);
	if (w->selected.n)
		text_printf(&w->buffer, ",\"left\":%u", w->left);
	text_put(&w->buffer, "}\n");
	wake(w);
}

/* Those that had ended before somebody asked. */
static void begin(struct watcher *w)
{
	struct target *t = NULL;

	w->left = w->selected.n;
	while (w->selected.n && (t = targets_next(host_targets(w->host), t)))
		if (t->state == TARGET_GONE)
			on_gone(w, t);
}

static void on_sample(void *userdata, struct target *t, const struct stream_sample *s, uint64_t real_ns)
{
	struct watcher *w = userdata;

	if (!wanted(w, t))
		return;
	if (w->buffer.len - w->sent > BUFFER_MAX) {
		w->dropped++;
		return;
	}
	if (w->dropped) {
		text_printf(&w->buffer, "{\"event\":\"dropped\",\"count\":%llu}\n",
			    (unsigned long long)w->dropped);
		w->dropped = 0;
	}
	text_printf(&w->buffer, "{\"event\":\"cpu\",\"ts_ns\":%llu,\"pid\":%d,\"tid\":%u,\"thread\":",
		    (unsigned long long)real_ns, t->jvm.pid, s->tid);
	text_json(&w->buffer, s->thread);
	text_printf(&w->buffer, ",\"weight_ns\":%llu,\"stack\":[", (unsigned long long)s->weight_ns);
	stack_text(w, t, s->node);
	text_put(&w->buffer, "]}\n");
	wake(w);
}

/* MHD asks for more bytes; none now means sleep until a sample comes. */
static ssize_t read_more(void *userdata, uint64_t position, char *buf, size_t max)
{
	struct watcher *w = userdata;
	size_t n = w->buffer.len - w->sent;

	(void)position;
	if (n == 0 && w->selected.n && !w->left)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		if (!w->suspended) {
			w->suspended = true;
			serve_suspend(w->request);
		}
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

static void forget(void *userdata)
{
	struct watcher *w = userdata;

	host_unlisten(w->host, &w->listener);
	free(w->buffer.p);
	free(w);
}

enum MHD_Result serve_events(struct request *r)
{
	const char *event = argument(r, "event");
	struct MHD_Response *response;
	enum MHD_Result result;
	struct watcher *w;

	if (event && strcmp(event, "cpu") != 0)
		return answer_error(r, 400, "event=%s is not one of cpu", event);
	w = calloc(1, sizeof(*w));
	if (!w)
		return MHD_NO;
	if (api_select(r, &w->selected) < 0) {
		free(w);
		return MHD_YES;
	}
	w->request = r;
	w->host = r->serve->host;
	w->listener.on_sample = on_sample;
	w->listener.on_gone = on_gone;
	w->listener.userdata = w;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64 * 1024, read_more, w, forget);
	if (!response) {
		free(w);
		return MHD_NO;
	}
	begin(w);
	host_listen(w->host, &w->listener);
	MHD_add_response_header(response, "Content-Type", "application/x-ndjson");
	result = MHD_queue_response(r->connection, 200, response);
	MHD_destroy_response(response);
	r->answered = true;
	return result;
}
