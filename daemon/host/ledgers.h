/* Fills each target's struct time_ledger: once a second with the kernel's totals for all
 * threads, and with the reasons that events give for parts of them. */
#pragma once

#include "daemon/host/host_priv.h"

/* An offcpu_times_fn for the last times of a thread that has ended; @userdata is the host. */
void host_ledgers_on_end(void *userdata, const struct offcpu_times *times);
/* Adds the time of one interval to its reason. The event has thread numbers of the host. */
void host_ledgers_event(struct host_entry *e, const struct offcpu_event *event);
/* Adds a wait for a lock, or the sum of a thread's idle waits: it explains times off the CPU that
 * are too short for an event. @w has a thread number of the host. */
void host_ledgers_wait(const struct host_entry *e, const struct stream_lock *w);
/* Takes a thread's state and its sums of waits that were too short for an event: they explain times
 * off the CPU. @w has a thread number of the host. */
void host_ledgers_state(struct host_entry *e, const struct wire_state *w);
