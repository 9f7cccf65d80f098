/*
 * The live end of the history: samples go into windows of ten seconds, which keep apart what came
 * in each second (a slice). A window is handed on (to the store) when it closes, two seconds after
 * its end. The last LIVE_WINDOWS windows stay in memory, fewer when they take more than
 * LIVE_BYTES_MAX. A sample that comes later than its window goes into the oldest open second, one
 * from the future into the newest: the times are what a target says.
 */
#pragma once

#include "daemon/profile/kernel_stacks.h"
#include "daemon/profile/profile.h"
#include "daemon/stream/stream.h"

#define LIVE_SLICE_NS  1000000000ull
#define LIVE_WINDOW_NS 10000000000ull
#define LIVE_WINDOWS   30
/* of closed windows; the newest one and those that are open beside it. The store has them all. */
#define LIVE_BYTES_MAX (2ul << 20)
#define LIVE_BYTES     (192ul << 20)

struct live;
struct live_source; /* one target's session: maps its stream's ids to profile ids */

/* Called with each closed window; borrowed. */
typedef void live_window_fn(void *userdata, const struct profile *window);

/* Called once a second with each slice of a window that is not closed which has changed since, and
 * with names of the whole window (profile_encode_used()); false = not now, again the next time. */
typedef bool live_slice_fn(void *userdata, const struct profile *slice);

int live_new(live_window_fn *on_window, void *userdata, struct live **ret);
/* @bytes: of these the windows whose seconds are known take a half; LIVE_BYTES at first. */
void live_limit(struct live *l, size_t bytes);
/*
 * Puts what is older into the second of @real_ns, a full one. Windows that a former process stored
 * all begin before it then: live_oldest_real_ns() parts them from those in memory, and none is
 * counted twice or left out.
 */
void live_begin_at(struct live *l, uint64_t real_ns);
void live_on_slice(struct live *l, live_slice_fn *on_slice); /* @userdata of live_new() */
struct live *live_free(struct live *l); /* closes the open window first */
DEFINE_FREEP(struct live, live_free);

/* Strings of @info are borrowed for the call. */
struct live_process {
	uint32_t pid, ns_pid;
	uint64_t start_time;
	const char *name, *container_id, *container, *pod, *jdk;
	const char *labels; /* of labels.h; NULL or "" = none */
	const char *note; /* see struct profile_process; NULL or "" = nothing */
	uint64_t tenant; /* likewise */
};
int live_source_new(struct live *l, const struct live_process *info, struct live_source **ret);
struct live_source *live_source_free(struct live_source *s);
/* Nothing of it comes any more: what only that needs is given back. */
void live_source_end(struct live_source *s);
void live_source_update(struct live_source *s, const struct live_process *info); /* jdk known now */

/* Stacks of the kernel for one sample, which share its weight, and what names their addresses. */
struct live_kernel {
	const struct kernel_stack *first;
	unsigned n;
	/* until the next call; NULL = nobody knows */
	const char *(*name)(void *userdata, uint64_t address);
	void *userdata;
};

/* One sample, wait or allocation. */
struct live_event {
	enum wire_event event;
	enum wire_wait wait; /* of locks */
	bool idle; /* a wait for work, idle.h */
	uint32_t tid;
	const char *thread;
	uint32_t node; /* leaf of its stack, 0 = none */
	const char *class_name; /* stands on the stack: what was waited for or allocated; "" =
				   nothing */
	uint64_t weight;
	uint64_t samples; /* that it stands for; 0 = 1 */
	uint64_t interval; /* struct profile has the coarsest */
};

/* @real_ns: wall time of the event (mono converted by the caller); @kernel may be NULL. */
void live_add_event(struct live_source *s, const struct stream *stream, const struct live_event *e,
		    const struct live_kernel *kernel, uint64_t real_ns);
/* The same for a sample of CPU time. */
void live_add(struct live_source *s, const struct stream *stream,
	      const struct stream_sample *sample, const struct live_kernel *kernel,
	      uint64_t real_ns, uint64_t interval_ns);
/* Memory of a target's own, and of the seconds and windows of all. */
size_t live_source_bytes(const struct live_source *s);
size_t live_bytes(const struct live *l);
/* Node and thread ids of @s mean something else from now on. */
void live_source_reset(struct live_source *s);
/* What was dropped since the last call goes into the open slice; what came is booked as it comes.
 */
void live_add_books(struct live_source *s, const struct profile_books *delta);
/* CPU time that the process used from one moment to the next: to the slices in between. */
void live_add_cpu(struct live_source *s, uint64_t ns, uint64_t from_real_ns, uint64_t to_real_ns);
/* Closes slices and windows that are over; call at least once a second. */
void live_tick(struct live *l, uint64_t real_ns);
/* Merge what is in memory of [from, to) into @dst: whole seconds of the last 12 s at least, whole
 * windows before. */
int live_query(struct live *l, uint64_t from_real_ns, uint64_t to_real_ns,
	       const struct profile_filter *filter, struct profile *dst);
/* All windows before this moment are closed; 0 = none was begun. */
uint64_t live_open_real_ns(const struct live *l);
/* Oldest moment that is still in memory; UINT64_MAX = nothing is. */
uint64_t live_oldest_real_ns(const struct live *l);

/* A recording: its own profile of one source's events from now on, until freed. @events: bits 1 <<
 * enum wire_event. One at a time: -EBUSY. */
struct live_tap;
int live_tap_new(struct live_source *s, unsigned events, uint64_t now_real_ns,
		 struct live_tap **ret);
/* Nothing is added any more, and another may begin. Its span ends now: what it is about, whatever
 * times its target tells. */
void live_tap_end(struct live_tap *t, uint64_t now_real_ns);
struct live_tap *live_tap_free(struct live_tap *t);
struct profile *live_tap_profile(struct live_tap *t); /* owned by the tap */
