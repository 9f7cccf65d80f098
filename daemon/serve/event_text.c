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

void event_stack(struct text_out *to, const char *key, struct host *h, const struct target *t,
		 uint32_t leaf)
{
	static uint32_t chain[STREAM_DEPTH_MAX + 1];
	struct stream_frame f;
	uint32_t n = 0, parent;
	char buf[1024];

	json_begin_list(to, key);
	for (uint32_t node = leaf; stream_node(t->stream, node, &f, &parent); node = parent)
		chain[n++] = node;
	while (n-- > 0) {
		stream_node(t->stream, chain[n], &f, &parent);
		json_add_string(to, NULL, event_frame_name(h, t, &f, buf, sizeof(buf)));
	}
	json_end_list(to);
}

void event_trace(struct text_out *to, const struct stream_context *trace)
{
	if (!trace) {
		json_add_null(to, "trace");
		return;
	}
	json_begin_object(to, "trace");
	json_add_string(to, "trace_id", trace->trace_id);
	json_add_string(to, "span_id", trace->span_id);
	json_end_object(to);
}

static void event_begin(struct text_out *to, const struct target *t, const char *event,
			uint32_t tid, const char *thread, uint64_t real_ns)
{
	json_begin_object(to, NULL);
	json_add_string(to, "event", event);
	json_add_u64(to, "ts_ns", real_ns);
	json_add_i64(to, "pid", t->jvm.pid);
	thread_text(to, t, tid, thread);
}

static void event_end(struct text_out *to)
{
	json_end_object(to);
	json_end_line(to);
}

void event_sample(struct text_out *to, struct host *h, const struct target *t,
		  const struct stream_sample *s, uint64_t real_ns)
{
	event_begin(to, t, "cpu", s->tid, s->thread, real_ns);
	json_add_u64(to, "weight_ns", s->weight_ns);
	event_trace(to, s->trace);
	event_stack(to, "stack", h, t, s->node);
	event_end(to);
}

static void event_thread(struct text_out *to, const struct target *t, const char *key, uint32_t tid,
			 const char *name)
{
	if (!tid) {
		json_add_null(to, key);
		return;
	}
	json_begin_object(to, key);
	thread_text(to, t, tid, name);
	json_end_object(to);
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
	event_begin(to, t, "lock", w->tid, w->thread, real_ns);
	json_add_string(to, "kind",
			w->wait < WIRE_WAIT_COUNT ? wire_wait_names[w->wait] : "unknown");
	json_add_u64(to, "duration_ns", w->duration_ns);
	json_add_bool(to, "open", w->flags & WIRE_LOCK_OPEN);
	json_add_bool(to, "timed", w->flags & WIRE_LOCK_TIMED);
	json_add_bool(to, "idle", idle);
	json_add_u64(to, "waits", w->waits);
	locks_text_lock(to, "lock", event_text_class_of(t, w), w->identity);
	event_thread(to, t, "owner", w->owner_tid, w->owner);
	event_trace(to, w->trace);
	event_stack(to, "stack", h, t, w->node);
	event_stack(to, "owner_stack", h, t, w->owner_node);
	event_end(to);
}

static void offcpu_syscall_text(struct text_out *to, int nr)
{
	const char *name = offcpu_syscall_name(nr);
	char number[16];

	snprintf(number, sizeof(number), "%d", nr);
	if (nr < 0)
		json_add_null(to, "syscall");
	else
		json_add_string(to, "syscall", name ? name : number);
}

/* The waker: a thread of the same JVM, or another process. */
static void offcpu_waker_text(struct text_out *to, const struct target *t,
			      const struct offcpu_event *e)
{
	if (!e->waker_tid) {
		json_add_null(to, "waker");
		return;
	}
	json_begin_object(to, "waker");
	json_add_u64(to, "pid", e->waker_pid);
	if (e->waker_pid == (uint32_t)t->jvm.pid) {
		thread_text(to, t, e->waker_tid, e->waker);
	} else {
		json_add_u64(to, "tid", e->waker_tid);
		json_add_null(to, "thread");
	}
	json_end_object(to);
}

static void offcpu_kernel_text(struct text_out *to, struct host *h, const struct offcpu_event *e)
{
	json_begin_list(to, "kernel");
	for (unsigned i = e->n_ips; i-- > 0;) {
		const char *name = host_kernel_name(h, e->ips[i]);

		json_add_string(to, NULL, name ? name : "[unknown]");
	}
	json_end_list(to);
}

void event_offcpu(struct text_out *to, struct host *h, const struct target *t,
		  const struct offcpu_event *e, uint64_t real_ns)
{
	const struct stream_lock *w = e->lock;

	event_begin(to, t, "offcpu", e->virtual_tid ? e->virtual_tid : e->tid,
		    e->virtual_tid ? e->virtual_thread : e->thread, real_ns);
	json_add_u64(to, "duration_ns", e->duration_ns);
	json_add_string(to, "reason", offcpu_reason_names[e->reason]);
	json_add_bool(to, "by_habit", e->by_habit);
	offcpu_syscall_text(to, e->syscall_nr);
	json_add_u64(to, "runqueue_ns", e->runqueue_ns);
	json_add_bool(to, "idle", e->idle);
	if (w)
		locks_text_lock(to, "lock", event_text_class_of(t, w), w->identity);
	else
		json_add_null(to, "lock");
	event_thread(to, t, "owner", w ? w->owner_tid : 0, w ? w->owner : "");
	offcpu_waker_text(to, t, e);
	event_thread(to, t, "carrier", e->virtual_tid && e->tid != e->virtual_tid ? e->tid : 0,
		     e->thread);
	event_trace(to, e->trace);
	offcpu_kernel_text(to, h, e);
	event_stack(to, "stack", h, t, e->node);
	event_end(to);
}
