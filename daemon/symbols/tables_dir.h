/* The directory of tables, bounded in bytes. A table is "<tenant>_<what>.sym". The tenant that
 * has the most loses tables first, those that were not used for longest. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Callbacks about tables. One that is in use goes after its tenant's others, and is reported. */
struct tables_use {
	bool (*in_use)(void *userdata, const char *name); /* may be NULL; so may on_gone */
	void (*on_gone)(void *userdata, const char *name);
	void *userdata;
};

/* Every table counts for at least this many bytes, which bounds the number of small ones, too. */
#define TABLES_DIR_BYTES_MIN (16u << 10)

/* Removes incomplete files, left behind by children of an earlier daemon. */
void tables_dir_sweep(int dfd);
/* If there are more than @max bytes, removes tables until an eighth of @max is free, those first
 * that were not used (touched) for longest. *ret_bytes and *ret_n: what is left. */
void tables_dir_prune(int dfd, uint64_t max, const struct tables_use *use, uint64_t *ret_bytes,
		      unsigned *ret_n);
