/* Shared by the files of the off-CPU engine: its programs (offcpu_load.c) and the table of threads
 * that they write (offcpu_threads.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/bpf/offcpu_engine.h"

struct offcpu_bpf;

#define OFFCPU_PROGRAMS 6

struct offcpu_programs {
	bool no_wakers; /* true = the program that records wakers is not attached */
	bool syscall_exits; /* one runs at the end of each system call, if the way needs it */
	struct offcpu_bpf *bpf;
	int attached[OFFCPU_PROGRAMS]; /* descriptors; -1 = not attached */
	int finder; /* link of the program for threads of new targets; -1 = none */
	struct offcpu_thread *threads; /* [n_threads], mapped */
	uint32_t n_threads; /* a power of two */
	struct offcpu_target *targets; /* [OFFCPU_TARGETS_MAX], mapped */
	struct offcpu_tenant *tenants; /* [OFFCPU_TENANTS_MAX], mapped */
};

/* The best way that this kernel has. */
enum offcpu_way offcpu_best_way(const struct host_engine *host);
/* Loads what @way needs, and maps the tables. 0, or -errno with a sentence in @why. */
int offcpu_load(struct host_engine *host, enum offcpu_way way, struct offcpu_programs *p,
		char *why);
void offcpu_unload(struct offcpu_programs *p);
/* Attaches the programs. Needs no rights. 0 or -errno; after an error none is attached. */
int offcpu_attach(struct offcpu_programs *p);
void offcpu_detach(struct offcpu_programs *p);
/* Detaches only the program that records wakers; while no_wakers is set, offcpu_attach() leaves it
 * out. */
void offcpu_detach_wakers(struct offcpu_programs *p);

/* Sets the bit of a process; the programs ignore processes without it. */
void offcpu_mark(struct offcpu_programs *p, pid_t pid, bool is_target);
/* Thread @tid of @pid; NULL = it is not in the table. */
struct offcpu_thread *offcpu_threads_find(struct offcpu_programs *p, pid_t pid, uint32_t tid);
/* Adds the threads of processes that are in the table of targets and not marked yet, with what they
 * sleep in. Goes over all threads of the host. If the kernel refuses, threads that sleep are
 * unknown until they run. */
void offcpu_threads_add(const struct offcpu_programs *p);
/* The next slot of the table from *@at on that a thread has; NULL = there is none. Begin with *@at
 * = 0. */
struct offcpu_thread *offcpu_threads_next(const struct offcpu_programs *p, uint32_t *at);
/* Drops the entries of threads that ended while the process was being added, when the programs did
 * not know it yet. Call it once, some time after that. */
void offcpu_threads_prune(struct offcpu_programs *p, pid_t pid);
void offcpu_threads_drop(struct offcpu_programs *p, pid_t pid);
/* Adds the number of each target's slots to @counts ([OFFCPU_TARGETS_MAX]). */
void offcpu_threads_count(const struct offcpu_programs *p, uint32_t *counts);
/* Copies @t so that its times are consistent, although a program may be writing them. false = the
 * slot is free, or a program was writing all the time. */
bool offcpu_threads_copy(const struct offcpu_thread *t, struct offcpu_thread *ret);
/* The times of @t up to @now_ns. */
void offcpu_threads_times(const struct offcpu_thread *t, uint64_t now_ns, struct offcpu_times *ret);
