/*
 * Decodes the bytes of one agent's events pipe and calls its owner for each record. Nothing in them
 * is trusted: ids must be defined, strings are checked for UTF-8 and cut to a maximum, and the
 * memory of a stream is bounded. Bytes that violate the protocol end this stream with a fault,
 * never the daemon. The stream knows neither targets nor the loop: its owner reads the pipe and
 * feeds it.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/fault.h"
#include "daemon/ground/mem.h"
#include "proto/wire.h"

struct stream;

/* Deeper nodes become one, "[deeper stack cut]", which bounds the cost of walking a stack. Our
 * agents send none. */
#define STREAM_DEPTH_MAX 2304

/* A frame as the rest of the daemon sees it. The stream owns the strings; they are valid until
 * its end or the next RESET. Strings that a kind does not use are "". */
struct stream_frame {
	uint8_t kind; /* enum wire_kind */
	int32_t line; /* -1 unknown */
	const char *class_name; /* "java.lang.String" (dots), method kinds */
	const char *method; /* method kinds: name; label kinds: the label */
	const char *signature; /* "(Ljava/lang/String;)I" */
	const char *file; /* "String.java" */
	const char *module; /* NATIVE: path of the mapped file */
	uint64_t offset; /* NATIVE: offset in the file */
	/* method kinds: equal numbers mean the same class, method, signature and file, until a
	 * RESET; 0 = none */
	uint32_t method_id;
	uint32_t class_id, name_id, signature_id, file_id; /* likewise, of these texts */
};

/* What a tracer had under way in the thread. Visible ASCII; valid during the call. */
struct stream_context {
	const char *trace_id;
	const char *span_id; /* "" = unknown */
};

struct stream_sample {
	uint64_t mono_ns;
	uint32_t tid;
	/* Each name that a stream learns has a number, also if it is the name of another thread or
	 * stream: two samples with one number, other than 0, have one name. */
	uint32_t thread_number;
	const char *thread; /* name, "" if not known yet */
	uint64_t weight_ns;
	uint32_t node; /* leaf, 0 = none: walk with stream_node() */
	const struct stream_context *trace; /* NULL = none */
};

/* One wait, as in struct wire_lock. */
struct stream_lock {
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t duration_ns;
	uint32_t tid, owner_tid; /* 0 = unknown */
	const char *thread, *owner; /* names, "" if not known */
	uint8_t wait; /* enum wire_wait */
	uint8_t flags; /* WIRE_LOCK_x */
	const char *class_name; /* "java.util.concurrent.locks.ReentrantLock", "" unknown */
	uint32_t identity; /* 0 = unknown */
	uint32_t node, owner_node; /* 0 = none */
	uint32_t waits; /* waits that the record stands for: 1, except with WIRE_LOCK_SUM */
	const struct stream_context *trace; /* the waiter's; NULL = none */
};

/* One interval off the CPU, as in struct wire_offcpu. */
struct stream_offcpu {
	uint64_t mono_ns; /* CLOCK_MONOTONIC, shortly after the interval's end */
	uint64_t duration_ns;
	uint32_t tid; /* the platform thread's */
	uint32_t virtual_tid; /* of the virtual thread that it carries; 0 = none */
	const char *thread; /* name of the platform thread */
	const char *virtual_thread; /* name of the virtual one */
	uint32_t node;
	uint8_t status; /* enum wire_offcpu_status */
	/* with WIRE_OFFCPU_UNMOUNTED: what it was parked for; "" and 0 = unknown, or nothing */
	const char *class_name;
	uint32_t identity;
	const struct stream_context *trace; /* NULL = none */
};

struct stream_alloc {
	uint64_t mono_ns;
	uint32_t tid;
	const char *thread;
	const char *class_name; /* "java.lang.String", "[B", "" unknown */
	uint64_t size, weight; /* bytes */
	uint32_t node;
	const struct stream_context *trace; /* NULL = none */
};

/* A number of virtual threads in the same state, as in struct wire_virtual. */
struct stream_virtual {
	uint64_t mono_ns;
	const char *container; /* "" = started without a container */
	const char *class_name; /* of the object that they wait for; "" none or unknown */
	uint8_t state; /* enum wire_thread_state */
	uint32_t count, mounted;
};

/* The most that the process can have done so far, measured by clocks of the host. */
struct stream_limits {
	uint64_t cpu_ns; /* CPU time since the session began */
	uint64_t cpu_total_ns; /* since the process began */
	uint64_t age_ns; /* since the process began */
};

struct stream_ops {
	/* Called when the agent claims more than the last limits allow. NULL = every claim is
	 * accepted. */
	void (*limits)(void *userdata, struct stream_limits *ret);
	void (*on_hello)(void *userdata, const struct wire_hello *hello);
	void (*on_mapping)(void *userdata, const struct wire_mapping *m, const char *path);
	void (*on_thread)(void *userdata, const struct wire_thread *t, const char *name);
	void (*on_sample)(void *userdata, const struct stream_sample *s);
	void (*on_wall)(void *userdata, const struct stream_sample *s);
	/* waits that have ended are events; those with OPEN or CLOSED only describe the present */
	void (*on_lock)(void *userdata, const struct stream_lock *l);
	void (*on_alloc)(void *userdata, const struct stream_alloc *a);
	void (*on_offcpu)(void *userdata, const struct stream_offcpu *o);
	/* the current states of threads; sent only after a START with WIRE_START_THREADS, and
	 * not counted as events */
	void (*on_state)(void *userdata, const struct wire_state *w, const char *thread);
	void (*on_virtual)(void *userdata, const struct stream_virtual *v);
	/* a safepoint, as in struct wire_pause; not counted as an event. @operation: "" = unknown
	 */
	void (*on_pause)(void *userdata, const struct wire_pause *w, const char *operation);
	/* a sentence for the user about @step ("lock"); "" withdraws it */
	void (*on_note)(void *userdata, const char *step, const char *what);
	/* a LEDGER frame has been decoded: stream_counts() is consistent now */
	void (*on_ledger)(void *userdata);
	void (*on_fault)(void *userdata, const struct fault *f);
	void (*on_bye)(void *userdata, const struct fault *why);
	/* from now on all node and mapping ids have new meanings */
	void (*on_reset)(void *userdata);
};

/*
 * The accounting of one kind of event. At any moment, also after a fault: taken = delivered +
 * sum(dropped) + lost, in numbers and in weight. `taken` is the agent's count in its last LEDGER
 * plus what was decoded since. `lost` was written by the agent but never decoded: a defect of the
 * transport, 0 unless something is wrong. Samples that arrived and were refused are
 * dropped{implausible}. No counter ever decreases. The counts cover all sessions of the stream:
 * usually one, but frames of an earlier session may come first.
 */
struct stream_accounts {
	uint64_t taken, taken_weight;
	uint64_t delivered, delivered_weight;
	struct {
		uint64_t n, weight;
	} dropped[WIRE_DROP_COUNT];
	uint64_t lost, lost_weight;
};

struct stream_counts {
	struct stream_accounts of[WIRE_EVENT_COUNT];
	uint64_t bytes, frames; /* read from the pipe, in all sessions */
	struct wire_ledger ledger; /* the last session's latest, as the agent sent it */
};

int stream_new(const struct stream_ops *ops, void *userdata, struct stream **ret);
struct stream *stream_free(struct stream *s);
DEFINE_FREEP(struct stream, stream_free);
/* From now on a HELLO without @secret (WIRE_SECRET_BYTES, copied) ends the stream. */
void stream_expect(struct stream *s, const uint8_t *secret);
/* Decodes bytes read from the pipe. 0, or -errno with @f set: the stream has ended. */
int stream_feed(struct stream *s, const void *buf, size_t len, struct fault *f);
/* Tells the stream whether its reader is held back on purpose, or was a moment ago. While it is,
 * what the agent drops for want of room is counted as dropped{quota}. */
void stream_hold_back(struct stream *s, bool held_back);
/* When the last sample that was read was taken, CLOCK_MONOTONIC, as the agent says: it need not be
 * true. 0 = none was read. */
uint64_t stream_newest_ns(const struct stream *s);
size_t stream_bytes(const struct stream *s); /* the memory that it takes */
void stream_counts(const struct stream *s, struct stream_counts *ret);
/* The last LEDGER, as in stream_counts(); all 0 before the first one. */
const struct wire_ledger *stream_ledger(const struct stream *s);
/* Finds a node's caller, 0 at the root. false if @node is 0 or not defined. */
bool stream_parent(const struct stream *s, uint32_t node, uint32_t *ret_parent);
/* Likewise, together with the node's own frame. */
bool stream_node(const struct stream *s, uint32_t node, struct stream_frame *ret,
		 uint32_t *ret_parent);
/* Without names, which take most of the time: *ret has the kind, line and method_id of @node, if
 * that is a frame of a method. false = it is another frame, or not defined. */
bool stream_node_method(const struct stream *s, uint32_t node, struct stream_frame *ret);
/* One byte for each node, for the owner's use: it caches what it found out about the stack. 0 at
 * first, after a RESET and for an undefined node. */
uint8_t stream_node_mark(const struct stream *s, uint32_t node);
void stream_mark_node(const struct stream *s, uint32_t node, uint8_t mark);
void stream_forget_marks(const struct stream *s); /* of all nodes */
const char *stream_thread_name(const struct stream *s, uint32_t tid); /* "" if unknown */
