/* Where the time of a JVM's threads went, in JSON. */
#pragma once

#include "daemon/serve/serve_priv.h"

struct thread_times {
	struct time_rows rows; /* of the caller's: time_rows_free() */
	bool by_kernel; /* from the kernel's totals, which see all; else from samples and waits */
	const char *why; /* not by_kernel: why the kernel does not count; static */
};
/* 0 or -ENOMEM. */
int thread_times_of(struct host *h, const struct target *t, uint64_t last_ns,
		    struct thread_times *ret);
/* ,"wall_ns":... to "unseen_ns":... */
void thread_times_row_text(struct text_out *to, const struct time_row *r);
/* The sum over all threads, as an object. */
void thread_times_text(struct text_out *to, const struct thread_times *times);
