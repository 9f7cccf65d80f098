/* The directory of tables: bounded by bytes. "<tenant>_<what>.sym" is one table; of the tenant that
 * has the most, the longest unused goes first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What knows the tables: one that @in_use goes after its tenant's others, and is told of. */
struct tables_use {
	bool (*in_use)(void *userdata, const char *name); /* may be NULL, as the next */
	void (*on_gone)(void *userdata, const char *name);
	void *userdata;
};

/* What a table is counted as at least, bytes, so that small ones are bounded in number too. */
#define TABLES_DIR_BYTES_MIN (16u << 10)

/* Remove what children that died with an earlier daemon left half written. */
void tables_dir_sweep(int dfd);
/* If there are more than @max bytes, remove tables until an eighth of them is free, in the order of
 * time of change (touched when used). What is left goes to @ret_bytes and @ret_n. */
void tables_dir_prune(int dfd, uint64_t max, const struct tables_use *use, uint64_t *ret_bytes,
		      unsigned *ret_n);
