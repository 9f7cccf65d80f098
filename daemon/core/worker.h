/*
 * The only thread beside the loop. It runs jobs that may wait for a disk or take long (segment
 * writes, fsync, compression, rendering), in order, from a bounded queue. @run is called in the
 * thread and may use only @userdata; @done is called from the loop afterwards. Each is called
 * exactly once for every accepted job, also by worker_free(), which waits until the queue is empty.
 */
#pragma once

#include "daemon/core/loop.h"

#define WORKER_JOBS_MAX 64

struct worker;
int worker_new(struct loop *loop, struct worker **ret);
struct worker *worker_free(struct worker *w);
DEFINE_FREEP(struct worker, worker_free);
/* 0, or -EBUSY if WORKER_JOBS_MAX jobs wait or worker_free() runs: the caller drops and counts.
 * @done may be NULL. */
int worker_submit(struct worker *w, void (*run)(void *userdata), void (*done)(void *userdata),
		  void *userdata);
