/* Inside of the off-CPU engine: its programs (offcpu_load.c) and the table of threads that they
 * write (offcpu_threads.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/bpf/offcpu_engine.h"

struct offcpu_bpf;

#define OFFCPU_PROGRAMS 5

struct offcpu_programs {
	bool no_wakers; /* who wakes is not asked for: the program for it is not attached */
	struct offcpu_bpf *bpf;
	int attached[OFFCPU_PROGRAMS]; /* descriptors; -1 = is not */
	struct offcpu_thread *threads; /* [OFFCPU_THREADS], mapped */
	struct offcpu_target *targets; /* [OFFCPU_TARGETS_MAX], mapped */
};

/* Loads what @way needs, and maps the tables. 0, or -errno with a sentence in @why. */
int offcpu_load(struct host_engine *host, enum offcpu_way way, struct offcpu_programs *p,
		char *why);
void offcpu_unload(struct offcpu_programs *p);
/* From now on the programs run. Needs no rights. 0 or -errno: then none does. */
int offcpu_attach(struct offcpu_programs *p);
void offcpu_detach(struct offcpu_programs *p);
/* The program for who wakes a thread, alone; with no_wakers set offcpu_attach() leaves it. */
void offcpu_detach_wakers(struct offcpu_programs *p);

/* A bit per process: programs look at no other. */
void offcpu_mark(struct offcpu_programs *p, pid_t pid, bool is_target);
/* Fills in threads of @pid, which is no target yet: those that sleep are not met for a while. */
void offcpu_threads_add(struct offcpu_programs *p, pid_t pid, uint16_t target, uint64_t now_ns);
void offcpu_threads_drop(struct offcpu_programs *p, pid_t pid);
/* A copy of @t in which the times fit together although a program may be writing it; false = the
 * place is free. */
bool offcpu_threads_copy(const struct offcpu_thread *t, struct offcpu_thread *ret);
/* The times of @t up to @now_ns. */
void offcpu_threads_times(const struct offcpu_thread *t, uint64_t now_ns, struct offcpu_times *ret);
