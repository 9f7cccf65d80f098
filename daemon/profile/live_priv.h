/*
 * Inside the live end: live.c (windows), live_seconds.c (the seconds of those that are open or were
 * closed last), live_source.c (what a target's events are added
 * to), live_ids.c (a stream's ids in a profile), live_tap.c (recordings).
 */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/profile/profile_priv.h"

#define LIVE_RECENT  4 /* windows that have seconds: the open ones, and the last that was closed */
#define LIVE_SECONDS (LIVE_WINDOW_NS / LIVE_SLICE_NS)

/* What one second added to a row of its window. A row may have several parts in one second. */
struct live_part {
	uint32_t row, samples;
	uint64_t weight;
};

/* Likewise to a process. */
struct live_head {
	struct profile_books books;
	uint64_t cpu_ns;
};

struct live_second {
	struct live_part *parts;
	uint32_t n_parts, cap_parts;
	struct live_head *heads; /* by process */
	uint32_t n_heads;
	struct profile_books books;
	uint64_t changes, told; /* how often it changed, 0 = nothing is in it; as of the last
				   live_slice_fn */
};

/*
 * A window whose seconds can still be told apart. All of it is in its profile as it comes, so
 * closing it costs nothing; names and stacks are there once, not once a second.
 */
struct live_recent {
	struct profile *profile; /* NULL = nothing in it */
	uint64_t begin_real_ns; /* of the ten seconds */
	uint64_t serial; /* tells windows apart that used the same place */
	struct live_second seconds[LIVE_SECONDS];
	struct live_last {
		uint32_t second, part; /* second + 1, 0 = none; the last part of a row */
	} * last;
	uint32_t n_last;
	size_t bytes, bytes_max; /* of all that is not in the profile */
};

/* Where something is added. */
struct live_place {
	struct live_recent *window; /* NULL = there is no memory */
	struct live_second *second;
};

struct live {
	size_t bytes_max;
	live_window_fn *on_window;
	live_slice_fn *on_slice; /* may be NULL */
	void *userdata;
	struct live_recent recent[LIVE_RECENT]; /* by number, modulo */
	struct profile *windows[LIVE_WINDOWS]; /* older ones, likewise */
	uint64_t open_from; /* wall time: all before it is in a window; 0 = nothing came yet */
	uint64_t tick_ns; /* wall time of the last live_tick() */
	uint64_t begin_ns; /* wall time: nothing is put before it; 0 = anything goes */
	uint64_t next_serial;
	struct live_source *sources; /* owned */
};

struct live_tap {
	struct live_source *source; /* borrowed; NULL = it has ended */
	struct profile *profile;
	unsigned events; /* bits 1 << enum wire_event */
	uint64_t serial; /* as of a window */
	struct live_tap *next;
};

/* Ids of a source in one profile. */
struct live_ids {
	uint64_t serial; /* of the window it is for; 0 = none */
	uint32_t generation; /* entries of older ones are void */
	uint32_t process; /* UINT32_MAX = not known yet */
	uint64_t *nodes; /* by stream node: generation << 32 | profile node */
	uint64_t *methods; /* by stream method: generation << 32 | a profile frame of it */
	uint32_t n_nodes, n_methods;
	uint64_t second; /* CLOCK_MONOTONIC; nodes that are new in it: */
	uint32_t new_nodes;
};

struct live_source {
	struct live *live;
	struct live_process info; /* strings owned */
	struct live_ids caches[2]; /* windows of even and odd numbers: late samples alternate */
	struct live_ids tap_cache;
	struct live_tap *taps; /* borrowed */
	struct live_source *next;
};

/* live.c: the second of a moment, which is moved to where seconds are open. */
struct live_place live_place_at(struct live *l, uint64_t real_ns);
/* The newest second that is open and has something in it. */
struct live_place live_newest_place(struct live *l);

/* live_seconds.c: what was added to the window's profile is its second's, too. @row UINT32_MAX =
 * none. */
void live_second_add_row(struct live_place at, uint32_t row, uint64_t samples, uint64_t weight);
void live_second_add_came(struct live_place at, uint32_t process, const struct profile_row *row);
void live_second_add_books(struct live_place at, uint32_t process, const struct profile_books *d);
void live_second_add_cpu(struct live_place at, uint32_t process, uint64_t ns);
/*
 * The seconds of @w that begin in [from, to) as a profile, which borrows from that of @w: good
 * until that changes, to be freed by live_view_free() alone. 1, 0 = there are none, or -ENOMEM.
 */
int live_view(const struct live_recent *w, uint64_t from_real_ns, uint64_t to_real_ns,
	      struct profile *ret);
void live_view_free(struct profile *view);
/* Forgets the seconds; the profile is the caller's. */
struct profile *live_recent_end(struct live_recent *w);

/* live_ids.c: the ids are for the profile of @serial from now on. */
void live_ids_turn(struct live_ids *c, uint64_t serial);
void live_ids_forget(struct live_ids *c); /* and gives its memory back */
/* The process, which pays for what is new from then on, and (after it) the stack that ends in
 * @leaf, in @p; what has no room is "[profile full]" there. */
uint32_t live_ids_process(struct live_ids *c, struct profile *p, const struct live_process *info);
uint32_t live_ids_stack(struct live_ids *c, struct profile *p, const struct stream *stream,
			uint32_t leaf);

/* live_source.c: adds one event to @p, which is the one of @serial, and to its second @at if it is
 * a window's. */
void live_add_to_profile(struct live_source *s, struct profile *p, struct live_ids *c,
			 uint64_t serial, const struct stream *stream, const struct live_event *e,
			 const struct live_kernel *kernel, struct live_place at);

/* live_tap.c */
void live_tap_add(struct live_tap *t, const struct stream *stream, const struct live_event *e,
		  const struct live_kernel *kernel);
void live_tap_add_books(struct live_tap *t, const struct profile_books *delta);
void live_tap_add_cpu(struct live_tap *t, uint64_t ns);
