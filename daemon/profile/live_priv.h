/*
 * Inside the live end: live.c (windows), live_seconds.c (the seconds of open windows and of the
 * last closed one), live_source.c (adds a target's events), live_ids.c (a stream's ids in a
 * profile), live_tap.c (recordings).
 */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/profile/live_ids.h"
#include "daemon/profile/profile_priv.h"

#define LIVE_RECENT  4 /* windows that have seconds: the open ones, and the last closed one */
#define LIVE_SECONDS (LIVE_WINDOW_NS / LIVE_SLICE_NS)

/* The increase of one row of a window in one second. A row may have several parts in one second. */
struct live_part {
	uint32_t row, samples;
	uint64_t weight;
};

/* Likewise for a process. */
struct live_head {
	struct profile_accounts accounts;
	uint64_t cpu_ns;
};

struct live_second {
	struct live_part *parts;
	uint32_t n_parts, cap_parts;
	struct live_head *heads; /* by process */
	uint32_t n_heads;
	struct profile_accounts accounts;
	uint64_t changes, told; /* number of changes, 0 = empty; and the number at the last
				 * live_slice_fn */
};

/*
 * A window whose seconds can still be told apart. All events are in its profile as they come, so
 * closing it costs nothing; names and stacks are stored once, not once for each second.
 */
struct live_recent {
	struct profile *profile; /* NULL = empty */
	uint64_t begin_real_ns; /* of the ten seconds */
	uint64_t serial; /* tells windows apart that used the same slot */
	struct live_second seconds[LIVE_SECONDS];
	struct live_last {
		uint32_t second, part; /* second + 1, 0 = none; the last part of a row */
	} * last;
	uint32_t n_last;
	size_t bytes, bytes_max; /* bytes of everything outside of the profile */
};

/* The place to add events to. */
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
	struct profile *windows[LIVE_WINDOWS]; /* closed ones, likewise */
	uint64_t open_from; /* wall time: everything before it is in a window; 0 = nothing came yet
			     */
	uint64_t tick_ns; /* wall time of the last live_tick() */
	uint64_t begin_ns; /* wall time: nothing is added before it; 0 = no limit */
	uint64_t next_serial;
	struct live_source *sources; /* owned */
};

struct live_tap {
	struct live_source *source; /* borrowed; NULL = the source has ended */
	struct profile *profile;
	unsigned events; /* bits 1 << enum wire_event */
	uint64_t serial; /* as for a window */
	struct live_tap *next;
};

struct live_source {
	struct live *live;
	struct live_process info; /* strings owned */
	struct live_ids caches[2]; /* for windows with even and odd numbers: late samples alternate
				    * between them */
	struct live_ids tap_cache;
	struct live_tap *taps; /* borrowed */
	struct live_source *next;
};

/* live.c: the second of a moment, which is clamped to the open seconds. */
struct live_place live_place_at(struct live *l, uint64_t real_ns);
/* The newest open second that is not empty. */
struct live_place live_newest_place(struct live *l);

/* live_seconds.c: also adds to the second what was added to the window's profile. @row UINT32_MAX =
 * no row. */
void live_second_add_row(struct live_place at, uint32_t row, uint64_t samples, uint64_t weight);
void live_second_add_came(struct live_place at, uint32_t process, const struct profile_row *row);
void live_second_add_accounts(struct live_place at, uint32_t process,
			      const struct profile_accounts *d);
void live_second_add_cpu(struct live_place at, uint32_t process, uint64_t ns);
/*
 * The seconds of @w that begin in [from, to) as a profile, which borrows from that of @w: valid
 * until that changes, to be freed only by live_view_free(). 1, 0 = there are none, or -ENOMEM.
 */
int live_view(const struct live_recent *w, uint64_t from_real_ns, uint64_t to_real_ns,
	      struct profile *ret);
void live_view_free(struct profile *view);
/* Drops the seconds; the profile is the caller's. */
struct profile *live_recent_end(struct live_recent *w);

/* live_source.c: adds one event to @p, which is the profile @serial, and to its second @at if it is
 * a window's. */
void live_add_to_profile(struct live_source *s, struct profile *p, struct live_ids *c,
			 uint64_t serial, const struct stream *stream, const struct live_event *e,
			 const struct live_kernel *kernel, struct live_place at);

/* @w is closed: its ids are not needed any more. */
void live_sources_settle(struct live *l, const struct live_recent *w);

/* live_tap.c */
void live_tap_add(struct live_tap *t, const struct stream *stream, const struct live_event *e,
		  const struct live_kernel *kernel);
void live_tap_add_accounts(struct live_tap *t, const struct profile_accounts *delta);
void live_tap_add_cpu(struct live_tap *t, uint64_t ns);
