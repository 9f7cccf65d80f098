/*
 * Makes the heap of a process that lives for months give freed memory back to the kernel. Otherwise
 * glibc raises its mmap threshold, up to 32 MiB, whenever a mapped block is freed: then big tables
 * lie between small blocks, and freeing them gives nothing back. It also keeps an arena for each
 * thread.
 */
#pragma once

#include <stddef.h>

#define HEAP_APART (128ul << 10) /* for tables that grow large and stay */
#define HEAP_WORK  (4ul << 20) /* for work that allocates and frees such blocks all the time */
/* Makes blocks of @apart_bytes and more mappings of their own: only pages that are used take
 * memory, each at the price of a page fault. To be called before other threads are started. */
void heap_begin(size_t apart_bytes);
/* Gives free memory back to the kernel, if there is enough of it to be worth a pass over the heap.
 * To be called after much was freed. */
void heap_give_back(void);
