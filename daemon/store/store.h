/*
 * The local history: windows (profile_encode) in append-only segment files under
 * <state_dir>/segments/, one zstd-compressed record with a CRC for each process. Beside each
 * finished segment are an index and sums of its windows (decisions/0018). store_append() and
 * store_upkeep() run in the worker thread. Readers share nothing with them but the files, so any
 * thread may read, and so may another program (store_open). A torn end (after a crash, or on a full
 * disk) is found by its CRC and cut away; the rest is kept. A segment of another version is
 * skipped, and left alone until the retention removes it.
 */
#pragma once

#include "daemon/profile/profile.h"

#define STORE_PROCESSES_MAX (1u << 18)

struct store;
int store_new(const char *dir, uint64_t retention_ns, uint64_t max_bytes, struct store **ret);
/* Opens it only for reading, in one thread, while another process may write to it: nothing is
 * created, cut or unlinked. What was found in the newest segment is kept from query to query. */
int store_open(const char *dir, struct store **ret);
struct store *store_free(struct store *s);
DEFINE_FREEP(struct store, store_free);
/* Appends one window and unlinks segments beyond the retention. 0 or -errno; -ENOSPC: the window
 * was dropped, and counted. */
int store_append(struct store *s, const struct profile *window);
/* The seconds of windows that are not closed yet. store_journal_bytes() encodes a slice of
 * live.h, with the names that no earlier slice of its window had; store_journal() writes it at
 * once, in the thread of store_append(), in the order of encoding. After an error of either, or
 * without store_journal(), live_slice_lost() is called. If this daemon dies, the next one makes a
 * window of them. 0 or -errno. */
int store_journal_bytes(const struct profile *slice, uint8_t **ret, size_t *ret_len);
int store_journal(struct store *s, uint64_t begin_real_ns, const uint8_t *bytes, size_t len);
/* Writes missing indexes and sums; to be called after each window. Usually there is nothing to
 * do. */
void store_upkeep(struct store *s);
void store_hurry(struct store *s); /* any thread: the daemon is about to end, upkeep must stop */

/* Merges all windows that overlap [from, to) into @dst. The windows of live.h are aligned to ten
 * seconds: adjacent spans that are aligned likewise have each window once. */
int store_query(struct store *s, uint64_t from_real_ns, uint64_t to_real_ns,
		const struct profile_filter *filter, struct profile *dst);
/* Calls @fn for each window of one process that begins in [from, to), the earliest first, until
 * @fn returns a negative number, which is returned. Else 0 or -ENOMEM. */
typedef int store_window_fn(void *userdata, const struct profile *window);
int store_each_window(struct store *s, uint32_t pid, uint64_t start_time, uint64_t from_real_ns,
		      uint64_t to_real_ns, store_window_fn *fn, void *userdata);

/* A process that has windows. */
struct store_process {
	uint32_t pid, ns_pid;
	uint64_t start_time, tenant;
	uint64_t begin_real_ns, end_real_ns;
	uint64_t windows, samples, bytes; /* bytes: on disk, compressed */
	char *name, *container_id, *container, *pod, *jdk; /* owned; "" = none */
	char *labels; /* as labels.h encodes them; owned; "" = none */
};
/* The processes of [from, to). Of a segment that overlaps the span all windows count. Free *ret
 * with store_processes_free(). 0 or -ENOMEM. */
int store_processes(struct store *s, uint64_t from_real_ns, uint64_t to_real_ns,
		    struct store_process **ret, uint32_t *ret_n);
/* Likewise without names and labels, which are NULL: those cost reading a window of each process
 * that the newest segment has. */
int store_processes_unnamed(struct store *s, uint64_t from_real_ns, uint64_t to_real_ns,
			    struct store_process **ret, uint32_t *ret_n);
void store_processes_free(struct store_process *list, uint32_t n);

struct store_counts {
	uint64_t windows, dropped_windows,
		torn; /* since the start; torn: torn ends that were cut away */
	uint64_t recovered_windows; /* that the previous daemon had not closed when it died */
	uint64_t bytes, segments; /* on disk */
	uint64_t foreign; /* segments of other versions, which are not read */
	uint64_t failing_since_ns; /* CLOCK_REALTIME; no window could be written since; 0 = the last
				      one was written */
	int failing_error; /* errno of the last failure */
};
void store_counts(const struct store *s, struct store_counts *ret); /* any thread */
/* Counts a window that was dropped because earlier ones were still being written; store_note()
 * says so until a window is written. Any thread. */
void store_missed(struct store *s);
/* A sentence for the user if the history has stopped or a part of it cannot be read; else "". */
#define STORE_NOTE_MAX 256
void store_note(const struct store_counts *c, char ret[STORE_NOTE_MAX]);
/* The present size of the files; takes no lock. */
uint64_t store_disk_bytes(struct store *s);
int store_dir_fd(const struct store *s); /* the directory's descriptor, owned by the store */
/* Was the directory removed? Then nothing can be read, and a store that is only read cannot be
 * used any more; one that is written to makes the directory again. */
bool store_is_gone(const struct store *s);
