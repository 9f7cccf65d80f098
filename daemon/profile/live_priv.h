/*
 * Inside the live end: live.c (slices and windows), live_source.c (what a target's events are added
 * to), live_ids.c (a stream's ids in a profile), live_tap.c (recordings).
 */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/profile/profile_priv.h"

#define LIVE_PLACES 32 /* of slices */

struct live_slice {
	struct profile *profile; /* NULL = nothing in it */
	uint64_t begin_real_ns;
	uint64_t serial; /* tells slices apart that used the same place */
	uint64_t changes, told; /* how often it changed; as of the last live_slice_fn */
};

struct live {
	size_t bytes_max;
	live_window_fn *on_window;
	live_slice_fn *on_slice; /* may be NULL */
	void *userdata;
	struct live_slice slices[LIVE_PLACES]; /* by second, modulo */
	struct profile *windows[LIVE_WINDOWS]; /* by number, modulo */
	uint64_t open_from; /* wall time: all before it is in a window; 0 = nothing came yet */
	uint64_t tick_ns; /* wall time of the last live_tick() */
	uint64_t next_serial;
	struct live_source *sources; /* owned */
};

struct live_tap {
	struct live_source *source; /* borrowed; NULL = it has ended */
	struct profile *profile;
	unsigned events; /* bits 1 << enum wire_event */
	uint64_t serial; /* as of a slice */
	struct live_tap *next;
};

/* Ids of a source in one profile. */
struct live_ids {
	uint64_t serial; /* of the slice it is for; 0 = none */
	uint32_t generation; /* entries of older ones are void */
	uint32_t process; /* UINT32_MAX = not known yet */
	uint64_t *nodes; /* by stream node: generation << 32 | profile node */
	uint32_t n_nodes;
	uint64_t second; /* CLOCK_MONOTONIC; nodes that are new in it: */
	uint32_t new_nodes;
};

struct live_source {
	struct live *live;
	struct live_process info; /* strings owned */
	struct live_ids caches[2]; /* seconds of even and odd numbers: late samples alternate */
	struct live_ids tap_cache;
	struct live_tap *taps; /* borrowed */
	struct live_source *next;
};

/* live.c: the slice of a moment, which is moved to where slices are open; NULL without memory. */
struct live_slice *live_slice_at(struct live *l, uint64_t real_ns);
/* The open slice that began last; NULL = none is open yet. */
struct live_slice *live_newest_slice(struct live *l);

/* live_ids.c: the ids are for the profile of @serial from now on. */
void live_ids_turn(struct live_ids *c, uint64_t serial);
void live_ids_forget(struct live_ids *c); /* and gives its memory back */
/* The process, which pays for what is new from then on, and (after it) the stack that ends in
 * @leaf, in @p; what has no room is "[profile full]" there. */
uint32_t live_ids_process(struct live_ids *c, struct profile *p, const struct live_process *info);
uint32_t live_ids_stack(struct live_ids *c, struct profile *p, const struct stream *stream,
			uint32_t leaf);

/* live_source.c: adds one event to @p, which is the one of @serial. */
void live_add_to_profile(struct live_source *s, struct profile *p, struct live_ids *c,
			 uint64_t serial, const struct stream *stream, const struct live_event *e,
			 const struct live_kernel *kernel);

/* live_tap.c */
void live_tap_add(struct live_tap *t, const struct stream *stream, const struct live_event *e,
		  const struct live_kernel *kernel);
void live_tap_add_books(struct live_tap *t, const struct profile_books *delta);
void live_tap_add_cpu(struct live_tap *t, uint64_t ns);
