/*
 * The local history: hourly append-only segment files of zstd-compressed, CRC-checked windows
 * (profile_encode) under <state_dir>/segments/. store_append() runs in the worker
 * thread, store_query() anywhere: it shares nothing with it but the files. A torn tail (crash, full
 * disk) is found by its CRC and cut; the rest is kept. A segment of another version is skipped and
 * left alone until the retention takes it.
 */
#pragma once

#include "daemon/profile/profile.h"

struct store;
int store_new(const char *dir, uint64_t retention_ns, uint64_t max_bytes, struct store **ret);
struct store *store_free(struct store *s);
DEFINE_FREEP(struct store, store_free);
/* Append one window; unlinks segments past the retention. 0 or -errno (-ENOSPC: dropped, counted).
 */
int store_append(struct store *s, const struct profile *window);
/* Merge all windows that touch [from, to) into @dst. */
int store_query(struct store *s, uint64_t from_real_ns, uint64_t to_real_ns,
		const struct profile_filter *filter, struct profile *dst);
struct store_counts {
	uint64_t windows, dropped_windows, torn; /* since the start; torn = tails that were cut */
	uint64_t bytes, segments; /* on disk */
};
void store_counts(const struct store *s, struct store_counts *ret); /* any thread */
int store_dir_fd(const struct store *s); /* that store_query() needs; the store's */
