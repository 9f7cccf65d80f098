/* What targets say, as the live end takes it: waits, allocations, wall-clock samples, the books. */
#pragma once

#include "daemon/profile/live.h"
#include "daemon/target/target.h"

/* A thread's number as histories keep it. */
uint32_t host_history_tid(uint32_t tid, const char *name);
/* A wait that ended; OPEN and CLOSED ones are not for a profile. @idle: idle_wait() of it. */
void host_add_lock(struct live_source *to, const struct target *t, const struct stream_lock *w,
		   bool idle);
void host_add_alloc(struct live_source *to, const struct target *t, const struct stream_alloc *a);
void host_add_wall(struct live_source *to, const struct target *t, const struct stream_sample *s);
/* What was dropped since the last call, and waits that were only counted; @booked is up to date
 * then. */
struct profile_books host_new_books(const struct target *t, struct profile_books *booked);
