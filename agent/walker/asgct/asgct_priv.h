/* Shared by asgct.c, which finds AsyncGetCallTrace, and asgct_sig.c, which calls it. */
#pragma once

#include <stdint.h>

struct asgct_trace;
typedef void asgct_fn(struct asgct_trace *trace, int32_t depth, void *ucontext);

extern asgct_fn *walk_asgct; /* set before the first signal */
