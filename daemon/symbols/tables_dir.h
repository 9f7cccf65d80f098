/* The directory of tables, bounded in bytes. "<tenant>_<what>.sym" is one table; the longest unused
 * one of the tenant that has the most is removed first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Callbacks about tables: one that is @in_use is removed after its tenant's others, and
 * reported. */
struct tables_use {
	bool (*in_use)(void *userdata, const char *name); /* may be NULL, like the next one */
	void (*on_gone)(void *userdata, const char *name);
	void *userdata;
};

/* The minimum that a table counts for, bytes, so that the number of small ones is bounded too. */
#define TABLES_DIR_BYTES_MIN (16u << 10)

/* Removes incomplete files of children that died with an earlier daemon. */
void tables_dir_sweep(int dfd);
/* If there are more than @max bytes, removes tables until an eighth of them is free, in the order
 * of time of change (touched when used). The rest is counted in @ret_bytes and @ret_n. */
void tables_dir_prune(int dfd, uint64_t max, const struct tables_use *use, uint64_t *ret_bytes,
		      unsigned *ret_n);
