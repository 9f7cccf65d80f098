/*
 * When each virtual thread without a carrier began to wait, by its Thread.threadId(). The thread
 * itself adds and removes its entry, just before it leaves its carrier and just after it has one
 * again, so no two threads ever touch one entry. Nothing here blocks or allocates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct unmounted_counts {
	uint64_t short_waits, short_ns; /* waits below the threshold, which are only counted */
	uint64_t long_waits; /* the others that were seen from begin to end */
	uint64_t unseen; /* waits that began when the table had no room */
};

/* Agent's thread: allocates the table, empty. 0 or -ENOMEM. */
int unmounted_table_begin(void);
/* Agent's thread: from now on, waits that began before now are unknown. */
void unmounted_table_renew(void);
/* Agent's thread: returns the memory to the kernel. The table is never unmapped: a thread that
 * comes late finds zeros. */
void unmounted_table_end(void);
uint64_t unmounted_table_bytes(void);
void unmounted_table_counts(struct unmounted_counts *ret);

/* The virtual thread @id waits from now on. */
void unmounted_add(uint64_t id, uint64_t now_ns);
/* Removes the entry of @id. Returns when its wait began; 0 = unknown, or this is its first mount.
 */
uint64_t unmounted_remove(uint64_t id);
/* Count a wait below the threshold, or another one. @carrier: any number of the calling thread. */
void unmounted_count_short(uint64_t carrier, uint64_t duration_ns);
void unmounted_count_long(uint64_t carrier);
