/* Helpers for all BPF programs of the daemon: preconditions and error texts. Only for files of this
 * room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct host_engine;

/* sampler_calls.c: writes which system calls wait, by number (enum sampler_wait), to
 * @of_call[@n]. */
void sampler_calls_fill(unsigned char *of_call, size_t n);

/* The maps that the off-CPU programs share with the sampler. The descriptors belong to @e. */
struct host_engine_maps {
	int targets, counts;
	int slots; /* -1 = signals are not put off by task work */
	int stays; /* -1 = they are */
	bool linux7; /* which object was loaded */
};

/* The objects for kernels that schedule task work as Linux 7 does (signal.bpf.h); NULL + errno. */
struct sampler_bpf *sampler_linux7_open(void);
struct offcpu_bpf *offcpu_linux7_open(void);
/* That for Linux 5.15 to 6.12, which names no kernel functions. */
struct offcpu_bpf *offcpu_linux5_open(void);

void host_engine_maps(const struct host_engine *e, struct host_engine_maps *ret);

/* Is the daemon in the first pid namespace? The pids that BPF programs see are of that one;
 * elsewhere they mean other processes. */
bool bpf_pids_are_ours(void);
/* Writes a sentence about @error at @step to @why; returns -@error. */
int bpf_refuse(int error, const char *step, char *why, size_t why_size);
/* libbpf's own messages go to the debug log. */
void bpf_log_quietly(void);
