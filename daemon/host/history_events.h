/* Converts events of targets for the live end: waits, allocations, wall-clock samples, times off
 * the CPU, counters. */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/profile/offcpu_event.h"
#include "daemon/target/target.h"

/* A thread's number as the history stores it, for the host's number and the thread's name. */
uint32_t host_history_tid(uint32_t tid, const char *name);
/* Adds a wait that has ended, never an OPEN or CLOSED record. @idle: idle_wait() of it. */
void host_add_lock(struct live_source *to, const struct target *t, const struct stream_lock *w,
		   bool idle);
void host_add_alloc(struct live_source *to, const struct target *t, const struct stream_alloc *a);
void host_add_wall(struct live_source *to, const struct target *t, const struct stream_sample *s);
/* Adds an interval off the CPU. The threads of @e have the host's numbers; @kernel may be NULL. */
void host_add_offcpu(struct live_source *to, const struct target *t, const struct offcpu_event *e,
		     const struct live_kernel *kernel);
/* The drops since the last call, and waits that were only counted; brings @booked up to date. */
struct profile_accounts host_new_accounts(const struct target *t, struct profile_accounts *booked);
