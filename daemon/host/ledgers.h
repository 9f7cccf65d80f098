/* Fills each target's struct time_ledger: once a second with the kernel's totals for all
 * threads, and with the reasons that events give for parts of them. */
#pragma once

#include "daemon/host/host_priv.h"

/* An offcpu_times_fn for the last times of a thread that has ended; @userdata is the host. */
void host_ledgers_on_end(void *userdata, const struct offcpu_times *times);
/* The reason of one interval; the event's threads have the host's numbers. */
void host_ledgers_event(struct host_entry *e, const struct offcpu_event *event);
/* A wait for a lock, or the sum of a thread's idle waits: the reason of times off the CPU that are
 * too short for an event. Its thread has the host's number. */
void host_ledgers_wait(const struct host_entry *e, const struct stream_lock *w);
/* A thread's state, and its sums of waits that were too short for an event: the reason of times off
 * the CPU. The thread has the host's number. */
void host_ledgers_state(struct host_entry *e, const struct wire_state *w);
