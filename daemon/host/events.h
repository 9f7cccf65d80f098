/* Converts events of targets for the live end: waits, allocations, wall-clock samples, counters. */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/profile/offcpu_event.h"
#include "daemon/target/target.h"

/* A thread's number as the history stores it. */
uint32_t host_history_tid(uint32_t tid, const char *name);
/* A wait that ended; OPEN and CLOSED records must not come here. @idle: idle_wait() of it. */
void host_add_lock(struct live_source *to, const struct target *t, const struct stream_lock *w,
		   bool idle);
void host_add_alloc(struct live_source *to, const struct target *t, const struct stream_alloc *a);
void host_add_wall(struct live_source *to, const struct target *t, const struct stream_sample *s);
/* @e with the host room's numbers; @kernel may be NULL. */
void host_add_offcpu(struct live_source *to, const struct target *t, const struct offcpu_event *e,
		     const struct live_kernel *kernel);
/* Drops since the last call, and waits that were only counted; afterwards @booked is up to date. */
struct profile_accounts host_new_accounts(const struct target *t, struct profile_accounts *booked);
