/*
 * The host's numbers of a container's threads, as `top -H` shows them: the agent reports numbers of
 * its own pid namespace. The kernel shows both numbers only thread by thread
 * (/proc/PID/task/TID/status), so every new thread is looked up once, when the stream reports it.
 * Looks take one hundredth of the time, and a process with very many threads is looked at in
 * portions. A thread that ends before a look keeps its container's number, marked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"

/* most threads of one process; the numbers of others stay unknown */
#define THREAD_IDS_MAX	 32768u
#define THREAD_IDS_LOOKS 2048u /* files read in one look */
/* Added to a number that is known only in the container: above all tids of the kernel, below
 * virtual threads. */
#define THREAD_ID_FOREIGN 0x40000000u

struct thread_ids;

/* @task_dfd: /proc/PID/task; taken. NULL without memory. */
struct thread_ids *thread_ids_new(int task_dfd);
struct thread_ids *thread_ids_free(struct thread_ids *t);
DEFINE_FREEP(struct thread_ids, thread_ids_free);

/* A thread was reported by its container's number; @java_id 0 = unknown. Looks, if it is new. */
void thread_ids_reported(struct thread_ids *t, uint32_t ns_tid, uint64_t java_id, uint64_t now_ns);
/* The host's number; one with THREAD_ID_FOREIGN = unknown. */
uint32_t thread_ids_host(const struct thread_ids *t, uint32_t ns_tid);
/* The container's number of a host number; 0 = unknown. */
uint32_t thread_ids_container(const struct thread_ids *t, uint32_t host_tid);
