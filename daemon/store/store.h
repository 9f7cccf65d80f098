/*
 * The local history: append-only segment files of zstd-compressed, CRC-checked windows
 * (profile_encode), one record for each process, under <state_dir>/segments/; each finished segment
 * has an index and sums of windows beside it (decisions/0018). store_append() and store_upkeep()
 * run in the worker thread. Readers share only the files with them, so reading is possible
 * anywhere, also in another program (store_open). A torn tail (crash, full disk) is found by its
 * CRC and truncated; the rest is kept. A segment of another version is skipped and left alone until
 * the retention removes it.
 */
#pragma once

#include "daemon/profile/profile.h"

#define STORE_PROCESSES_MAX (1u << 18)

struct store;
int store_new(const char *dir, uint64_t retention_ns, uint64_t max_bytes, struct store **ret);
/* Opens it for reading only, while another process may write: nothing is created, truncated or
 * unlinked. */
int store_open(const char *dir, struct store **ret);
struct store *store_free(struct store *s);
DEFINE_FREEP(struct store, store_free);
/* Append one window; unlinks segments past the retention. 0 or -errno (-ENOSPC: dropped, counted).
 */
int store_append(struct store *s, const struct profile *window);
/* The seconds of windows that are not closed yet: a slice of live.h, encoded by
 * store_journal_bytes(), is written at once, and becomes a window of the next daemon if this one
 * dies. The first function may run anywhere, the second beside store_append(). 0 or -errno. */
int store_journal_bytes(const struct profile *slice, uint8_t **ret, size_t *ret_len);
int store_journal(struct store *s, uint64_t begin_real_ns, const uint8_t *bytes, size_t len);
/* Makes missing indexes and sums: after each window; usually there is nothing to do. */
void store_upkeep(struct store *s);
void store_hurry(struct store *s); /* any thread: the daemon is about to end, upkeep can wait */

/* Merges all windows that overlap [from, to) into @dst. Windows of live.h are aligned to ten
 * seconds, so adjacent aligned spans have each window once. */
int store_query(struct store *s, uint64_t from_real_ns, uint64_t to_real_ns,
		const struct profile_filter *filter, struct profile *dst);
/* Calls @fn for each window of one process that begins in [from, to), in the order of their times,
 * until it returns a negative number, which is returned; else 0 or -ENOMEM. */
typedef int store_window_fn(void *userdata, const struct profile *window);
int store_each_window(struct store *s, uint32_t pid, uint64_t start_time, uint64_t from_real_ns,
		      uint64_t to_real_ns, store_window_fn *fn, void *userdata);

/* Processes that have windows. */
struct store_process {
	uint32_t pid, ns_pid;
	uint64_t start_time, tenant;
	uint64_t begin_real_ns, end_real_ns;
	uint64_t windows, samples, bytes; /* on disk, compressed */
	char *name, *container_id, *container, *pod, *jdk; /* owned, "" = none */
	char *labels; /* of labels.h, likewise */
};
/* The processes of [from, to); at its edges all windows of a segment count. @ret is for
 * store_processes_free(). 0 or -ENOMEM. */
int store_processes(struct store *s, uint64_t from_real_ns, uint64_t to_real_ns,
		    struct store_process **ret, uint32_t *ret_n);
void store_processes_free(struct store_process *list, uint32_t n);

struct store_counts {
	uint64_t windows, dropped_windows, torn; /* since the start; torn = tails that were
						  * truncated */
	uint64_t recovered_windows; /* windows that the previous daemon had not closed when it died
				     */
	uint64_t bytes, segments; /* on disk */
	uint64_t foreign; /* segments of another version, which are not read */
	uint64_t failing_since_ns; /* real time: no window could be written since then; 0 = the last
				    * one was written */
	int failing_error; /* errno of the last one */
};
void store_counts(const struct store *s, struct store_counts *ret); /* any thread */
/* A window was dropped because earlier ones were still being written. Any thread; the note has this
 * until one is written. */
void store_missed(struct store *s);
/* A sentence about a history that has stopped, or of which a part cannot be read; "" = neither. */
#define STORE_NOTE_MAX 256
void store_note(const struct store_counts *c, char ret[STORE_NOTE_MAX]);
/* Like counts.bytes, from the files as they are now: takes no lock. */
uint64_t store_disk_bytes(struct store *s);
int store_dir_fd(const struct store *s); /* memory needed for reading; the store's */
