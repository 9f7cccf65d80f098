/* The directory of tables: bounded by bytes, the longest unused goes first. */
#pragma once

#include <stdint.h>

#define TABLES_DIR_BYTES_MAX (512ull << 20)

/* Remove what children that died with an earlier daemon left half written. */
void tables_dir_sweep(int dfd);
/* Remove the oldest tables by time of change (touched when used) until @max bytes are left; what is
 * mapped stays usable. */
void tables_dir_prune(int dfd, uint64_t max);
