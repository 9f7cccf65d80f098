/*
 * Decodes one agent's events pipe into calls. It trusts nothing: ids must be defined, strings are
 * checked for UTF-8 and capped, memory per stream is bounded (STREAM_*_MAX); bytes that violate the
 * protocol end this stream with a fault, never the daemon. It knows no target and no loop: the
 * owner feeds bytes and is called back.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/fault.h"
#include "daemon/ground/mem.h"
#include "proto/wire.h"

struct stream;

/* Nodes deeper than that, which no agent of ours sends, become one: "[deeper stack cut]". This
 * bounds the cost of walking a stack. */
#define STREAM_DEPTH_MAX 2304

/* A frame as the rest of the daemon sees it: strings owned by the stream, valid until its end or
 * the next RESET. Unused strings are "". */
struct stream_frame {
	uint8_t kind; /* enum wire_kind */
	int32_t line; /* -1 unknown */
	const char *class_name; /* "java.lang.String" (dots), method kinds */
	const char *method; /* method kinds: name; label kinds: the label */
	const char *signature; /* "(Ljava/lang/String;)I" */
	const char *file; /* "String.java" */
	const char *module; /* NATIVE: path of the mapped file */
	uint64_t offset; /* NATIVE: offset in the file */
	/* method kinds: frames with the same number have the same class, method, signature and
	 * file, until a RESET; 0 = none */
	uint32_t method_id;
};

/* What a tracer had under way in the thread: visible ASCII; valid during the call. */
struct stream_context {
	const char *trace_id;
	const char *span_id; /* "" = unknown */
};

struct stream_sample {
	uint64_t mono_ns;
	uint32_t tid;
	const char *thread; /* name, "" if not known yet */
	uint64_t weight_ns;
	uint32_t node; /* leaf, 0 = none: walk with stream_node() */
	const struct stream_context *trace; /* NULL = none */
};

/* One wait, as in struct wire_lock. */
struct stream_lock {
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	uint64_t duration_ns;
	uint32_t tid, owner_tid, waker_tid; /* 0 = unknown */
	const char *thread, *owner, *waker; /* names, "" if not known */
	uint8_t wait; /* enum wire_wait */
	uint8_t flags; /* WIRE_LOCK_x */
	const char *class_name; /* "java.util.concurrent.locks.ReentrantLock", "" unknown */
	uint32_t identity; /* 0 = unknown */
	uint32_t node, owner_node; /* 0 = none */
	uint32_t waits; /* number of waits that the record stands for: 1, except with WIRE_LOCK_SUM
			 */
	const struct stream_context *trace; /* the waiter's; NULL = none */
};

/* One interval off the CPU, as in struct wire_offcpu. */
struct stream_offcpu {
	uint64_t mono_ns; /* shortly after its end */
	uint64_t duration_ns;
	uint32_t tid; /* the platform thread's */
	uint32_t virtual_tid; /* of the virtual thread on it; 0 = none */
	const char *thread; /* name of the platform thread */
	const char *virtual_thread; /* name of the virtual one */
	uint32_t node;
	uint8_t status; /* enum wire_offcpu_status */
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
	const char *class_name; /* the class that they wait for, "" none or unknown */
	uint8_t state; /* enum wire_thread_state */
	uint32_t count, mounted;
};

/* Upper bounds of what the process can have done by now, from clocks of the host. */
struct stream_limits {
	uint64_t cpu_ns; /* CPU time since the session began */
	uint64_t cpu_total_ns; /* since the process began */
	uint64_t age_ns; /* since the process began */
};

struct stream_ops {
	/* Called when the agent claims more than was known to be possible. NULL = every claim is
	 * accepted. */
	void (*limits)(void *userdata, struct stream_limits *ret);
	void (*on_hello)(void *userdata, const struct wire_hello *hello);
	void (*on_mapping)(void *userdata, const struct wire_mapping *m, const char *path);
	void (*on_thread)(void *userdata, const struct wire_thread *t, const char *name);
	void (*on_sample)(void *userdata, const struct stream_sample *s);
	void (*on_wall)(void *userdata, const struct stream_sample *s);
	/* ended waits are events; OPEN and CLOSED ones only describe the present */
	void (*on_lock)(void *userdata, const struct stream_lock *l);
	void (*on_alloc)(void *userdata, const struct stream_alloc *a);
	void (*on_offcpu)(void *userdata, const struct stream_offcpu *o);
	/* current states of threads, only after a START with WIRE_START_THREADS; not events, and
	 * not counted */
	void (*on_state)(void *userdata, const struct wire_state *w, const char *thread);
	void (*on_virtual)(void *userdata, const struct stream_virtual *v);
	/* information about @step ("lock") for the user; "" withdraws it */
	void (*on_note)(void *userdata, const char *step, const char *what);
	/* after a LEDGER frame; stream_counts() is consistent now */
	void (*on_ledger)(void *userdata);
	void (*on_fault)(void *userdata, const struct fault *f); /* the agent sent BYE */
	void (*on_bye)(void *userdata, const struct fault *why);
	/* all node and mapping ids have a new meaning from now on */
	void (*on_reset)(void *userdata);
};

/*
 * The accounting of the stream, for each kind of event. At any moment, also after a fault: taken =
 * delivered + sum(dropped) + lost, in numbers and in weight. `taken` is the agent's own count as of
 * its last LEDGER plus what was decoded since; `lost` = written by the agent but never decoded (a
 * defect of the transport; 0 unless something is wrong). Samples that arrived and were refused are
 * dropped{implausible}. No counter ever decreases. A stream usually is one session; the HELLO of an
 * earlier session may come first, and its samples count too.
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
	uint64_t bytes, frames; /* read from the pipe */
	struct wire_ledger ledger; /* the last one of the last session, as sent by the agent */
};

int stream_new(const struct stream_ops *ops, void *userdata, struct stream **ret);
struct stream *stream_free(struct stream *s);
DEFINE_FREEP(struct stream, stream_free);
/* From now on every HELLO has to contain @secret (WIRE_SECRET_BYTES, copied); otherwise the stream
 * ends. */
void stream_expect(struct stream *s, const uint8_t *secret);
/* Feeds bytes read from the pipe. 0, or -errno with @f set: the stream has ended. */
int stream_feed(struct stream *s, const void *buf, size_t len, struct fault *f);
/* The reader is held back, or was a moment ago: from now on the agent's drops for want of room are
 * counted as dropped{quota}. */
void stream_hold_back(struct stream *s, bool held_back);
size_t stream_bytes(const struct stream *s); /* of memory */
void stream_counts(const struct stream *s, struct stream_counts *ret);
/* A node's caller, 0 at the root. false if @node is 0 or not defined. */
bool stream_parent(const struct stream *s, uint32_t node, uint32_t *ret_parent);
/* Likewise, and the node's own frame. */
bool stream_node(const struct stream *s, uint32_t node, struct stream_frame *ret,
		 uint32_t *ret_parent);
/* One byte for each node, in which the owner of the stream caches what it found out about the
 * stack; 0 at first and after a RESET, and always for an undefined node. */
uint8_t stream_node_mark(const struct stream *s, uint32_t node);
void stream_mark_node(const struct stream *s, uint32_t node, uint8_t mark);
const char *stream_thread_name(const struct stream *s, uint32_t tid); /* "" if unknown */
