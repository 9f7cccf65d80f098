/*
 * The live end of the history: samples go into windows of ten seconds, which keep the seconds
 * (slices) apart. A window is passed on (to the store) when it closes, two seconds after its end.
 * The last LIVE_WINDOWS windows stay in memory, fewer when they take more than LIVE_BYTES_MAX. A
 * sample that comes later than its window goes into the oldest open second, one from the future
 * into the newest: the target chooses the times.
 */
#pragma once

#include "daemon/profile/kernel_stacks.h"
#include "daemon/profile/profile.h"
#include "daemon/stream/stream.h"

#define LIVE_SLICE_NS  1000000000ull
#define LIVE_WINDOW_NS 10000000000ull
#define LIVE_WINDOWS   30
/* bytes of closed windows; the newest one and the open ones come on top. The store has them all. */
#define LIVE_BYTES_MAX (2ul << 20)
#define LIVE_BYTES     (192ul << 20)

struct live;
struct live_source; /* one target's session: maps its stream's ids to profile ids */

/* Called with each closed window; borrowed. */
typedef void live_window_fn(void *userdata, const struct profile *window);

/* Called once a second with each slice of an open window that has changed since the last call, and
 * with the names of the whole window (profile_encode_used()); false = not now, try again at the
 * next call. */
typedef bool live_slice_fn(void *userdata, const struct profile *slice);

int live_new(live_window_fn *on_window, void *userdata, struct live **ret);
/* @bytes: half of these are for windows whose seconds are known; LIVE_BYTES at first. */
void live_limit(struct live *l, size_t bytes);
/*
 * Moves anything older into the second of @real_ns, a full one. Then all windows stored by an
 * earlier process begin before it: live_oldest_real_ns() separates them from those in memory, and
 * none is counted twice or left out.
 */
void live_begin_at(struct live *l, uint64_t real_ns);
void live_on_slice(struct live *l, live_slice_fn *on_slice); /* @userdata of live_new() */
struct live *live_free(struct live *l); /* closes the open windows first */
DEFINE_FREEP(struct live, live_free);

/* Strings of @info are borrowed during the call. */
struct live_process {
	uint32_t pid, ns_pid;
	uint64_t start_time;
	const char *name, *container_id, *container, *pod, *jdk;
	const char *labels; /* of labels.h; NULL or "" = none */
	const char *note; /* see struct profile_process; NULL or "" = none */
	uint64_t tenant; /* likewise */
};
int live_source_new(struct live *l, const struct live_process *info, struct live_source **ret);
struct live_source *live_source_free(struct live_source *s);
/* No more events of it will come: frees what only they need. */
void live_source_end(struct live_source *s);
void live_source_update(struct live_source *s,
			const struct live_process *info); /* the jdk is known now */

/* Kernel stacks for one sample, which share its weight, and the function that names their
 * addresses. */
struct live_kernel {
	const struct kernel_stack *first;
	unsigned n;
	/* valid until the next call; NULL = unknown */
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
	const char *class_name; /* added on top of the stack: the class that was waited for or
				 * allocated, or why a thread was off the CPU; "" = none */
	uint64_t weight;
	uint64_t samples; /* number of events that it stands for; 0 = 1 */
	uint64_t interval; /* struct profile has the longest */
};

/* @real_ns: wall time of the event (mono converted by the caller); @kernel may be NULL. */
void live_add_event(struct live_source *s, const struct stream *stream, const struct live_event *e,
		    const struct live_kernel *kernel, uint64_t real_ns);
/* The same for a sample of CPU time. */
void live_add(struct live_source *s, const struct stream *stream,
	      const struct stream_sample *sample, const struct live_kernel *kernel,
	      uint64_t real_ns, uint64_t interval_ns);
/* Memory of one target, and of the seconds and windows of all. */
size_t live_source_bytes(const struct live_source *s);
size_t live_bytes(const struct live *l);
/* Node and thread ids of @s have a new meaning from now on. */
void live_source_reset(struct live_source *s);
/* Adds drops since the last call to the open slice; arrived events are counted on arrival. */
void live_add_accounts(struct live_source *s, const struct profile_accounts *delta);
/* CPU time that the process used between two moments: spread over the slices in between. */
void live_add_cpu(struct live_source *s, uint64_t ns, uint64_t from_real_ns, uint64_t to_real_ns);
/* Closes slices and windows whose time has passed; call at least once a second. */
void live_tick(struct live *l, uint64_t real_ns);
/* Merges what memory has of [from, to) into @dst: whole seconds of the last 12 s at least, whole
 * windows before. */
int live_query(struct live *l, uint64_t from_real_ns, uint64_t to_real_ns,
	       const struct profile_filter *filter, struct profile *dst);
/* All windows before this moment are closed; 0 = none was started. */
uint64_t live_open_real_ns(const struct live *l);
/* Oldest moment that is still in memory; UINT64_MAX = there is nothing. */
uint64_t live_oldest_real_ns(const struct live *l);

/* Starts a recording: a separate profile of one source's events from now on, until freed. @events:
 * bits 1 << enum wire_event. One at a time: -EBUSY. */
struct live_tap;
int live_tap_new(struct live_source *s, unsigned events, uint64_t now_real_ns,
		 struct live_tap **ret);
/* Nothing is added any more, and another recording may begin. Its span ends now, whatever times its
 * target sends. */
void live_tap_end(struct live_tap *t, uint64_t now_real_ns);
struct live_tap *live_tap_free(struct live_tap *t);
struct profile *live_tap_profile(struct live_tap *t); /* owned by the tap */
