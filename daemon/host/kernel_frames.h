/*
 * Kernel frames for samples of the host engine: keeps the stacks of its ticks until their samples
 * arrive, and names their addresses. When names or rights are missing a note says so; that is no
 * error.
 */
#pragma once

#include <sys/types.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/profile/kernel_stacks.h"
#include "daemon/profile/live.h"

struct kernel_frames;

struct kernel_frames_counts {
	uint64_t taken, matched, unmatched, lost;
};

/* Finds the waiting stacks of a process; NULL = it is not a target now. */
typedef struct kernel_stacks *kernel_frames_find_fn(void *userdata, pid_t pid);

int kernel_frames_new(struct host_engine *engine, kernel_frames_find_fn *find, void *userdata,
		      struct kernel_frames **ret);
struct kernel_frames *kernel_frames_free(struct kernel_frames *k);
/* Makes the storage for one target's stacks. 0 or -ENOMEM. */
int kernel_frames_stacks_new(struct kernel_frames *k, struct kernel_stacks **ret);
/* Takes new stacks from the engine: called before a sample is matched, and once a second. */
void kernel_frames_drain(struct kernel_frames *k);
/* The kernel stacks of @sample; the caller frees them with kernel_stack_free_all(). NULL = none. */
struct kernel_stack *kernel_frames_take(struct kernel_frames *k, struct kernel_stacks *stacks,
					const struct stream *stream,
					const struct stream_sample *sample,
					struct live_kernel *ret);
/* Wraps @first, with the function that names its addresses, for live_add_event(). */
struct live_kernel kernel_frames_of(struct kernel_frames *k, const struct kernel_stack *first);
void kernel_frames_counts(const struct kernel_frames *k, struct kernel_frames_counts *ret);
/* Why frames have no names; "" = they have, or the names are being read. */
const char *kernel_frames_note(const struct kernel_frames *k);
