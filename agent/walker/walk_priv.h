/* Shared by walker.c, which chooses a walker, and walk_sig.c, which calls it. */
#pragma once

#include "agent/walker/walker.h"

typedef void walk_fn(struct walk *w, void *ucontext);

extern walk_fn *walk_with_sig; /* set before the first signal */
