/*
 * The heap of a process that lives for months: what was freed goes back to the kernel. Without this
 * glibc raises the size from which it maps memory apart with every such block that is freed (to 32
 * MiB), so that big tables end up between small ones, and keeps an arena for each thread.
 */
#pragma once

void heap_begin(void); /* before other threads are */
/* Much was freed just now, or may have been: gives back what is worth a pass over the heap. */
void heap_give_back(void);
