/* What goes on in a JVM now: waits for locks and times off the CPU that have not ended, so that
 * no event tells of them yet. */
#pragma once

#include "daemon/serve/serve_priv.h"

struct timeline_open {
	enum timeline_kind kind; /* TIMELINE_LOCK or TIMELINE_OFFCPU */
	uint8_t reason, flags; /* as in struct timeline_event */
	uint32_t tid, owner_tid; /* the host's numbers */
	uint64_t begin_ns; /* CLOCK_REALTIME */
	const char *class_name; /* of the lock; "" = none, or unknown */
	uint32_t identity;
	int32_t syscall_nr; /* -1 = none, or unknown */
	uint32_t node, owner_node; /* of the target's stream; 0 = none */
};
struct timeline_opens {
	struct timeline_open *list; /* waits for locks first; malloc'ed */
	uint32_t n;
};
/* Free ret->list. 0 or -ENOMEM. */
int timeline_opens_of(struct host *h, const struct target *t, struct timeline_opens *ret);
