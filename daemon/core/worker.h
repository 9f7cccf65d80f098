/*
 * The one thread beside the loop: what may wait for a disk or takes long runs here, in order, behind
 * a bounded queue (segment writes, fsync, compression, rendering). @run runs in the worker and may
 * touch nothing but @userdata; @done runs in the loop afterwards. Both always run exactly once for
 * an accepted job, also at worker_free() (which finishes the queue).
 */
#pragma once

#include "daemon/core/loop.h"

#define WORKER_JOBS_MAX 64

struct worker;
int worker_new(struct loop *loop, struct worker **ret);
struct worker *worker_free(struct worker *w);
DEFINE_FREEP(struct worker, worker_free);
/* 0, or -EBUSY when WORKER_JOBS_MAX jobs wait or worker_free() runs: the caller drops and counts.
 * @done may be NULL. */
int worker_submit(struct worker *w, void (*run)(void *userdata), void (*done)(void *userdata),
		  void *userdata);
