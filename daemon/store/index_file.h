/*
 * The file of an index: this header; the records of sums; the table of processes, strings and
 * entries. Each has a CRC: the processes and strings together, the entries of each process, and
 * every record.
 */
#pragma once

#include <stdint.h>
#include "daemon/store/store_priv.h"

#define INDEX_MAGIC	    0x31786469474e444bull /* the last byte is the version */
#define INDEX_PROCESSES_MAX (1u << 18)
#define INDEX_ENTRIES_MAX   (1u << 26)
#define INDEX_STRINGS_MAX   (32u << 20)

struct index_header {
	uint64_t magic;
	uint64_t covered; /* bytes of the segment; in an hour's file, of all its segments */
	uint64_t table_at;
	uint32_t n_processes, n_entries, strings_len;
	uint32_t table_crc; /* processes and strings */
	uint32_t number; /* index_number(): low bits of the segment's number, or of the hour's first
			    one */
	uint32_t crc; /* of this header with 0 in its place */
};
_Static_assert(sizeof(struct index_header) == 48, "on disk");

static inline uint32_t index_number(enum store_file kind, uint64_t segment)
{
	return (uint32_t)(kind == STORE_SUMS ? segment / PARTS_MAX * PARTS_MAX : segment);
}
