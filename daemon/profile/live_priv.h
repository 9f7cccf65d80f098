/*
 * Shared by the files of the live end: live.c (windows), live_seconds.c (the seconds of open
 * windows and of the last closed one), live_source.c (adds a target's events), live_ids.c (a
 * stream's ids in a profile), live_tap.c (recordings).
 */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/profile/live_ids.h"
#include "daemon/profile/profile_priv.h"

#define LIVE_RECENT  4 /* windows that have seconds: open ones and the last closed one */
#define LIVE_SECONDS (LIVE_WINDOW_NS / LIVE_SLICE_NS)

/* What one second added to a row of its window. A second may have several parts of the same row. */
struct live_part {
	uint32_t row, samples;
	uint64_t weight;
};

/* What one second added to a process. */
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
	uint64_t changes, reported; /* number of changes, 0 = it is empty; their number when the
				   slice was last passed to live_slice_fn */
};

/*
 * A window whose seconds are still known. Its profile holds all events as they come, so closing it
 * costs nothing; names and stacks are stored once for all of its seconds.
 */
struct live_recent {
	struct profile *profile; /* NULL = empty */
	uint64_t begin_real_ns; /* of the window's ten seconds */
	uint64_t serial; /* differs for each window, also in the same slot */
	uint64_t names_serial; /* likewise, of the profile that has its names */
	struct live_second seconds[LIVE_SECONDS];
	struct live_last {
		uint32_t second,
			part; /* by row: where its last part is, second + 1; 0 = it has none */
	} * last;
	uint32_t n_last;
	size_t bytes, bytes_max; /* of everything but the profile */
};

/* Where to add an event. */
struct live_place {
	struct live_recent *window; /* NULL = no memory */
	struct live_second *second;
};

struct live {
	size_t bytes_max;
	live_window_fn *on_window;
	live_slice_fn *on_slice; /* may be NULL */
	void *userdata;
	struct live_recent recent[LIVE_RECENT]; /* at the window's number modulo LIVE_RECENT */
	struct profile
		*windows[LIVE_WINDOWS]; /* closed ones, at their number modulo LIVE_WINDOWS */
	uint64_t open_from; /* wall time; windows before it are closed; 0 = nothing came yet */
	uint64_t tick_ns; /* wall time of the last live_tick() */
	uint64_t begin_ns; /* wall time, live_begin_at(); 0 = no limit */
	uint64_t next_serial;
	struct profile *names; /* shared by the newest windows, see live_names_continue(); NULL =
				  the next window begins new ones */
	uint64_t names_serial;
	size_t names_paid; /* what the first window with these names needed; 0 = it is open */
	uint32_t names_ended; /* processes that ended since */
	bool keep_ids;
	struct live_source *sources; /* owned */
};

struct live_tap {
	struct live_source *source; /* borrowed; NULL = the source has ended */
	struct profile *profile;
	unsigned events; /* bits 1 << enum wire_event */
	bool ids;
	uint64_t serial; /* like a window's */
	struct live_tap *next;
};

struct live_source {
	struct live *live;
	struct live_process info; /* strings owned */
	struct live_ids caches[2]; /* by the parity of the window's number, because late samples go
				      to the previous window */
	struct live_stacks stacks[2]; /* known stacks, for the present names and the ones before */
	struct live_ids tap_cache;
	struct live_tap *taps; /* borrowed */
	struct live_source *next;
};

/* live.c: the window and second of a moment; a moment outside of the open seconds goes to the
 * nearest of them. */
struct live_place live_place_at(struct live *l, uint64_t real_ns);
/* The newest open second that has anything. */
struct live_place live_newest_place(struct live *l);

/* live_seconds.c: add to a second what was added to its window's profile. @row UINT32_MAX = no
 * row. */
void live_second_add_row(struct live_place at, uint32_t row, uint64_t samples, uint64_t weight);
void live_second_add_came(struct live_place at, uint32_t process, const struct profile_row *row);
void live_second_add_accounts(struct live_place at, uint32_t process,
			      const struct profile_accounts *d);
void live_second_add_cpu(struct live_place at, uint32_t process, uint64_t ns);
/*
 * Presents the seconds of @w that begin in [from, to) as a profile that borrows the tables of @w:
 * valid until @w changes, freed only with live_view_free(). 1, 0 = there are none, or -ENOMEM.
 */
int live_view(const struct live_recent *w, uint64_t from_real_ns, uint64_t to_real_ns,
	      struct profile *ret);
void live_view_free(struct profile *view);
/* Frees the seconds and returns the profile, which the caller owns. */
struct profile *live_recent_end(struct live_recent *w);

/* live_source.c: adds one event to @p, the profile with this serial, and to the second @at if it
 * is a window's; with its trace ids as long as there are not more than @spans. */
void live_add_to_profile(struct live_source *s, struct profile *p, struct live_ids *c,
			 uint64_t serial, const struct stream *stream, const struct live_event *e,
			 const struct live_kernel *kernel, struct live_place at, uint32_t spans);

/* @w is closed, and its names are not those of the next window: their ids are no longer needed. */
void live_sources_settle(struct live *l, const struct live_recent *w);

/* live_tap.c */
void live_tap_add(struct live_tap *t, const struct stream *stream, const struct live_event *e,
		  const struct live_kernel *kernel);
void live_tap_add_accounts(struct live_tap *t, const struct profile_accounts *delta);
void live_tap_add_cpu(struct live_tap *t, uint64_t ns);
