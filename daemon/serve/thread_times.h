/* Where the time of a JVM's threads went, in JSON. */
#pragma once

#include "daemon/serve/serve_priv.h"

/* In time_row.off_ns, behind the reasons: the JVM's own threads wait for work. */
#define THREAD_TIMES_IDLE OFFCPU_REASON_COUNT

struct thread_times {
	struct time_rows rows; /* free with time_rows_free() */
	bool by_kernel; /* from the kernel's totals, which miss nothing; else from samples and waits
			 */
	const char *why; /* static: why the kernel does not count, or, if by_kernel, why it has not
			  * counted all the time, as far as that is known; "" = unknown */
};
/* The enum offcpu_reason of each enum wire_wait. */
extern const uint8_t thread_times_lock_reasons[WIRE_WAIT_COUNT];
/* Over the @last_ns that ended @back_ns ago, 0 = now. 0 or -ENOMEM. */
int thread_times_of(struct host *h, const struct target *t, uint64_t back_ns, uint64_t last_ns,
		    struct thread_times *ret);
/* Of virtual threads, over the span of @others; free with time_rows_free(). 0 or -ENOMEM. */
int thread_times_of_virtual(const struct target *t, const struct time_rows *others,
			    struct time_rows *ret);
/* Writes the fields from "wall_ns" to "unseen_ns". */
void thread_times_row_text(struct text_out *to, const struct time_row *r);
/* Writes the sum over all threads, as an object. */
void thread_times_text(struct text_out *to, const char *key, const struct thread_times *times);
