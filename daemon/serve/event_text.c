/* Events as lines of JSON, as described in docs/api.md. */
#include <stdio.h>
#include <string.h>
#include "daemon/serve/serve_priv.h"

const char *event_frame_name(struct host *h, const struct target *t, const struct stream_frame *f,
			     char *buf, size_t size)
{
	const char *name = f->method, *module = strrchr(f->module, '/');

	if (f->kind == WIRE_KIND_NATIVE) {
		name = symbols_lookup(host_symbols(h), t->jvm.pid, t->jvm.start_time, f->module,
				      f->offset);
		snprintf(buf, size, "[%s+0x%llx]", module ? module + 1 : f->module,
			 (unsigned long long)f->offset);
		return name ? name : buf;
	}
	if (wire_kind_is_method(f->kind) && f->class_name[0]) {
		snprintf(buf, size, "%s.%s", f->class_name, f->method);
		return buf;
	}
	return name[0] ? name : "[unknown]";
}

static void event_text_frame_text(struct text_out *to, struct host *h, const struct target *t,
				  const struct stream_frame *f)
{
	char buf[1024];

	text_json(to, event_frame_name(h, t, f, buf, sizeof(buf)));
}

void event_stack(struct text_out *to, struct host *h, const struct target *t, uint32_t leaf)
{
	static uint32_t chain[STREAM_DEPTH_MAX + 1];
	struct stream_frame f;
	uint32_t n = 0, parent;

	text_put(to, "[");
	for (uint32_t node = leaf; stream_node(t->stream, node, &f, &parent); node = parent)
		chain[n++] = node;
	for (uint32_t i = n; i-- > 0;) {
		if (i + 1 < n)
			text_put(to, ",");
		stream_node(t->stream, chain[i], &f, &parent);
		event_text_frame_text(to, h, t, &f);
	}
	text_put(to, "]");
}

void event_trace(struct text_out *to, const struct stream_context *trace)
{
	if (!trace) {
		text_put(to, ",\"trace\":null");
		return;
	}
	text_put(to, ",\"trace\":{\"trace_id\":");
	text_json(to, trace->trace_id);
	text_put(to, ",\"span_id\":");
	text_json(to, trace->span_id);
	text_put(to, "}");
}

static void begin_text(struct text_out *to, const struct target *t, const char *event, uint32_t tid,
		       const char *thread, uint64_t real_ns)
{
	text_printf(to, "{\"event\":\"%s\",\"ts_ns\":%llu,\"pid\":%d,", event,
		    (unsigned long long)real_ns, t->jvm.pid);
	thread_text(to, t, tid, thread);
}

void event_sample(struct text_out *to, struct host *h, const struct target *t,
		  const struct stream_sample *s, uint64_t real_ns)
{
	begin_text(to, t, "cpu", s->tid, s->thread, real_ns);
	text_printf(to, ",\"weight_ns\":%llu", (unsigned long long)s->weight_ns);
	event_trace(to, s->trace);
	text_put(to, ",\"stack\":");
	event_stack(to, h, t, s->node);
	text_put(to, "}\n");
}

static void other_text(struct text_out *to, const struct target *t, const char *key, uint32_t tid,
		       const char *name)
{
	if (!tid) {
		text_printf(to, ",\"%s\":null", key);
		return;
	}
	text_printf(to, ",\"%s\":{", key);
	thread_text(to, t, tid, name);
	text_put(to, "}");
}

/* The class of the lock. If the record of an open wait lacks it, earlier waits may have it. */
static const char *event_text_class_of(const struct target *t, const struct stream_lock *w)
{
	const struct locks *l = host_locks(t);

	return w->class_name[0] || !l ? w->class_name : locks_class_of(l, w->identity);
}

void event_lock(struct text_out *to, struct host *h, const struct target *t,
		const struct stream_lock *w, bool idle, uint64_t real_ns)
{
	bool open = w->flags & WIRE_LOCK_OPEN;

	begin_text(to, t, "lock", w->tid, w->thread, real_ns);
	text_printf(
		to,
		",\"kind\":\"%s\",\"duration_ns\":%llu,\"open\":%s,\"timed\":%s,\"idle\":%s,\"waits\":%u",
		w->wait < WIRE_WAIT_COUNT ? wire_wait_names[w->wait] : "unknown",
		(unsigned long long)w->duration_ns, open ? "true" : "false",
		w->flags & WIRE_LOCK_TIMED ? "true" : "false", idle ? "true" : "false", w->waits);
	text_put(to, ",\"lock\":");
	locks_text_lock(to, event_text_class_of(t, w), w->identity);
	other_text(to, t, "owner", w->owner_tid, w->owner);
	other_text(to, t, "waker", w->waker_tid, w->waker);
	event_trace(to, w->trace);
	text_put(to, ",\"stack\":");
	event_stack(to, h, t, w->node);
	text_put(to, ",\"owner_stack\":");
	event_stack(to, h, t, w->owner_node);
	text_put(to, "}\n");
}

static void offcpu_syscall_text(struct text_out *to, int nr)
{
	const char *name = offcpu_syscall_name(nr);

	if (nr < 0)
		text_put(to, "null");
	else if (name)
		text_json(to, name);
	else
		text_printf(to, "\"%d\"", nr);
}

/* The waker: a thread of the same JVM, or another process. */
static void offcpu_waker_text(struct text_out *to, const struct target *t,
			      const struct offcpu_event *e)
{
	text_put(to, ",\"waker\":");
	if (!e->waker_tid) {
		text_put(to, "null");
		return;
	}
	text_printf(to, "{\"pid\":%u,", e->waker_pid);
	if (e->waker_pid == (uint32_t)t->jvm.pid)
		thread_text(to, t, e->waker_tid, e->waker);
	else
		text_printf(to, "\"tid\":%u,\"thread\":null", e->waker_tid);
	text_put(to, "}");
}

static void offcpu_kernel_text(struct text_out *to, struct host *h, const struct offcpu_event *e)
{
	text_put(to, ",\"kernel\":[");
	for (unsigned i = e->n_ips; i-- > 0;) {
		const char *name = host_kernel_name(h, e->ips[i]);

		text_json(to, name ? name : "[unknown]");
		if (i)
			text_put(to, ",");
	}
	text_put(to, "]");
}

void event_offcpu(struct text_out *to, struct host *h, const struct target *t,
		  const struct offcpu_event *e, uint64_t real_ns)
{
	const struct stream_lock *w = e->lock;

	begin_text(to, t, "offcpu", e->virtual_tid ? e->virtual_tid : e->tid,
		   e->virtual_tid ? e->virtual_thread : e->thread, real_ns);
	text_printf(to, ",\"duration_ns\":%llu,\"reason\":\"%s\",\"syscall\":",
		    (unsigned long long)e->duration_ns, offcpu_reason_names[e->reason]);
	offcpu_syscall_text(to, e->syscall_nr);
	text_printf(to, ",\"runqueue_ns\":%llu,\"idle\":%s,\"lock\":",
		    (unsigned long long)e->runqueue_ns, e->idle ? "true" : "false");
	if (w)
		locks_text_lock(to, event_text_class_of(t, w), w->identity);
	else
		text_put(to, "null");
	other_text(to, t, "owner", w ? w->owner_tid : 0, w ? w->owner : "");
	offcpu_waker_text(to, t, e);
	other_text(to, t, "carrier", e->virtual_tid && e->tid != e->virtual_tid ? e->tid : 0,
		   e->thread);
	event_trace(to, e->trace);
	offcpu_kernel_text(to, h, e);
	text_put(to, ",\"stack\":");
	event_stack(to, h, t, e->node);
	text_put(to, "}\n");
}
