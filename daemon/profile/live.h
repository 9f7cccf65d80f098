/*
 * The newest part of the history, in memory. Samples go into windows of ten seconds, which also
 * know what each second (slice) added. Two seconds after its end a window is closed and passed on
 * (to the store). The last LIVE_WINDOWS windows stay in memory, fewer if they take more than
 * LIVE_BYTES_MAX. The target chooses its samples' times: a sample that is too late for its window
 * goes into the oldest open second, one from the future into the newest.
 */
#pragma once

#include "daemon/profile/kernel_stacks.h"
#include "daemon/profile/profile.h"
#include "daemon/stream/stream.h"

#define LIVE_SLICE_NS  1000000000ull
#define LIVE_WINDOW_NS 10000000000ull
#define LIVE_WINDOWS   30
/* LIVE_BYTES_MAX: of closed windows; the newest one and the open ones come on top. */
#define LIVE_BYTES_MAX (2ul << 20)
#define LIVE_BYTES     (192ul << 20)
/* Spans of one source whose ids a window keeps; the events of further ones are without ids, and
 * counted (profile_losses.no_ids). */
#define LIVE_SPANS_MAX 2048u

struct live;
struct live_source; /* one target's session: maps the ids of its stream to ids in profiles */

/* Gets each window as it closes, borrowed. */
typedef void live_window_fn(void *userdata, const struct profile *window);

/* Gets, once a second, each slice of an open window that has changed since it was last passed
 * on, with the names of the whole window (profile_encode_slice() leaves out the rest). false =
 * not now; the next call has it again. */
typedef bool live_slice_fn(void *userdata, const struct profile *slice);

int live_new(live_window_fn *on_window, void *userdata, struct live **ret);
/* Sets the memory for windows in bytes (LIVE_BYTES at first); those with seconds get half of it. */
void live_limit(struct live *l, size_t bytes);
/*
 * Puts anything older than @real_ns, the begin of a second, into that second. Then all windows that
 * an earlier process stored begin before it: live_oldest_real_ns() separates stored windows from
 * those in memory, and none is counted twice or left out.
 */
void live_begin_at(struct live *l, uint64_t real_ns);
/* Windows keep the trace ids of events from now on, or no longer; not at first. Recordings have a
 * choice of their own. */
void live_keep_ids(struct live *l, bool keep);
void live_on_slice(struct live *l,
		   live_slice_fn *on_slice); /* called with the @userdata of live_new() */
/* profile_slice_lost() for the open window that begins at most a window's length before @real_ns.
 */
void live_slice_lost(struct live *l, uint64_t real_ns);
struct live *live_free(struct live *l); /* closes the open windows first */
DEFINE_FREEP(struct live, live_free);

/* Strings are copied; they are borrowed only during a call. */
struct live_process {
	uint32_t pid, ns_pid;
	uint64_t start_time;
	const char *name, *container_id, *container, *pod, *jdk;
	const char *labels; /* of labels.h; NULL or "" = none */
	const char *note; /* see struct profile_process; NULL or "" = none */
	uint64_t tenant; /* see struct profile_process */
};
int live_source_new(struct live *l, const struct live_process *info, struct live_source **ret);
struct live_source *live_source_free(struct live_source *s);
/* No more events of @s will come: frees what only they need. */
void live_source_end(struct live_source *s);
void live_source_update(
	struct live_source *s,
	const struct live_process *info); /* what has become known since, such as the JDK */

/* The kernel's stacks of one sample, which share its weight, and a function that names their
 * addresses. */
struct live_kernel {
	const struct kernel_stack *first;
	unsigned n;
	/* The name stays valid until the next call; NULL = unknown. */
	const char *(*name)(void *userdata, uint64_t address);
	void *userdata;
};

/* One sample, wait, allocation or interval off the CPU. */
struct live_event {
	enum wire_event event;
	enum wire_wait wait; /* of locks */
	bool idle; /* a wait for work, see idle.h */
	uint32_t tid;
	uint32_t thread_number; /* of the name, as in struct stream_sample; 0 = unknown */
	const char *thread;
	uint32_t node; /* leaf of its stack, 0 = none */
	const char
		*class_name; /* a frame that is put on top of the stack: the class that was waited
				for or allocated, or why the thread was off the CPU; "" = none */
	uint64_t weight;
	uint64_t samples; /* number of events that it stands for; 0 = 1 */
	uint64_t interval; /* between two samples; the profile keeps the longest */
	const struct stream_context *trace; /* NULL = none */
};

/* Adds an event. @real_ns is its wall-clock time, which the caller has converted; @kernel may be
 * NULL. */
void live_add_event(struct live_source *s, const struct stream *stream, const struct live_event *e,
		    const struct live_kernel *kernel, uint64_t real_ns);
/* Adds a sample of CPU time. */
void live_add(struct live_source *s, const struct stream *stream,
	      const struct stream_sample *sample, const struct live_kernel *kernel,
	      uint64_t real_ns, uint64_t interval_ns);
/* The memory of one target's ids, and of all windows with their seconds, in bytes. */
size_t live_source_bytes(const struct live_source *s);
size_t live_bytes(const struct live *l);
/* From now on the stream's node and thread ids have new meanings. */
void live_source_reset(struct live_source *s);
/* Adds to the counters of the newest second: what was dropped since the last call. Arrived
 * events are counted as they are added. */
void live_add_accounts(struct live_source *s, const struct profile_accounts *delta);
/* @interval of @event is in force, also if no event comes: see struct profile. */
void live_note_interval(struct live_source *s, enum wire_event event, uint64_t interval);
/* Adds CPU time that the process used between two moments, spread over the seconds in between. */
void live_add_cpu(struct live_source *s, uint64_t ns, uint64_t from_real_ns, uint64_t to_real_ns);
/* Closes windows whose time has passed. Must be called at least once a second. */
void live_tick(struct live *l, uint64_t real_ns);
/* Merges what is in memory of [from, to) into @dst: by whole seconds for at least the last 12 s,
 * by whole windows before. */
int live_query(struct live *l, uint64_t from_real_ns, uint64_t to_real_ns,
	       const struct profile_filter *filter, struct profile *dst);
/* Where the events of live_query() from @from_real_ns begin: at the begin of its second or window,
 * or later, if memory has nothing of that time. */
uint64_t live_query_begin(const struct live *l, uint64_t from_real_ns);
/* All windows that begin before this moment are closed; 0 = none has begun. */
uint64_t live_open_real_ns(const struct live *l);
/* The oldest moment in memory; UINT64_MAX = memory is empty. */
uint64_t live_oldest_real_ns(const struct live *l);

/* Starts a recording: a profile of its own with the events of @s from now on. @events: bits 1 <<
 * enum wire_event. @ids: with the trace ids of its events. -EBUSY: @s has a recording already. */
struct live_tap;
int live_tap_new(struct live_source *s, unsigned events, bool ids, uint64_t now_real_ns,
		 struct live_tap **ret);
/* Ends the recording: nothing is added any more, and another one may begin. The profile's span
 * ends now, whatever times the target has sent. */
void live_tap_end(struct live_tap *t, uint64_t now_real_ns);
struct live_tap *live_tap_free(struct live_tap *t);
struct profile *live_tap_profile(struct live_tap *t); /* owned by the tap */
