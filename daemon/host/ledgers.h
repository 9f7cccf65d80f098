/* Where the time of every target's threads goes: the kernel's totals once a second, and reasons for
 * them from events, into the target's struct time_ledger. */
#pragma once

#include "daemon/host/host_priv.h"

/* offcpu_times_fn; @userdata is the host: the last times of a thread that ended. */
void host_ledgers_on_end(void *userdata, const struct offcpu_times *times);
/* What an interval was for; with the host room's numbers. */
void host_ledgers_event(const struct host_entry *e, const struct offcpu_event *event);
