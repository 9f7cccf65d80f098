/* The table of processes that discovery has looked at, by pid, so that none is reported twice or
 * looked at more often than needed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/mem.h"

#define PROCESSES_MAX 65536

struct look_ticket;

struct process {
	pid_t pid;
	uint64_t start_time; /* 0 = not read yet */
	uint64_t seen_mono_ns; /* when discovery found it */
	uint64_t begin_mono_ns; /* when its program started, as far as known; delays begin there */
	uint64_t due_mono_ns; /* 0 = nothing to do before the next scan */
	uint32_t generation; /* scan that saw it last */
	bool reported; /* on_jvm() was called */
	uint8_t refusals; /* number of times that on_jvm() returned false */
	uint64_t tenant; /* look_tenant_of(); 0 = not known yet */
	struct look_ticket *question; /* an open question, cancelled with the entry; NULL = none */
	void *asker; /* the struct discovery that asked it */
	bool denied; /* the last look was not allowed to read the process */
	bool wants_look; /* the scan waits until it may ask about it */
	/* it was no JVM: scans from one look to the next (doubled each time), and scans left to
	 * skip */
	uint8_t idle_scans, skip_scans;
	char comm[16]; /* its name when a scan last looked at it */
	bool likely; /* called java, or has libjvm mapped: looked at often */
	struct process *next; /* in its bucket */
	struct process *due_prev, *due_next; /* list of the entries with due_mono_ns */
};

struct processes;
int processes_new(struct processes **ret);
struct processes *processes_free(struct processes *t);
DEFINE_FREEP(struct processes, processes_free);

struct process *processes_find(struct processes *t, pid_t pid);
/* The entry of @pid, or a new one; NULL when there are PROCESSES_MAX (counted) or no memory. */
struct process *processes_get(struct processes *t, pid_t pid);
void processes_remove(struct processes *t, struct process *p);
/* Writes up to @max pids of programs called java that the kernel did not allow to be read; returns
 * how many there are. */
uint32_t processes_denied(const struct processes *t, pid_t *pids, uint32_t max);
/* Removes all entries whose generation is not @generation. */
void processes_sweep(struct processes *t, uint32_t generation);

void processes_set_due(struct processes *t, struct process *p, uint64_t due_mono_ns);
/* Head of the list of due entries, in no order; NULL if empty. */
struct process *processes_due(struct processes *t);
uint32_t processes_due_count(const struct processes *t);
uint64_t processes_refused(const struct processes *t);
