/*
 * The heap of a process that lives for months: what was freed goes back to the kernel. Without this
 * glibc raises the size from which it maps memory apart with every such block that is freed (to 32
 * MiB), so that big tables end up between small ones, and keeps an arena for each thread.
 */
#pragma once

#include <stddef.h>

#define HEAP_APART (128ul << 10) /* for tables that grow large and stay */
#define HEAP_WORK  (4ul << 20) /* for work that takes and frees such blocks all the time */
/* Blocks of @apart_bytes and more are mapped apart: of them only what is used takes memory, at the
 * price of a page fault for each page. Before other threads are. */
void heap_begin(size_t apart_bytes);
/* Much was freed just now, or may have been: gives back what is worth a pass over the heap. */
void heap_give_back(void);
