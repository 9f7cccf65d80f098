/*
 * The host's numbers of a container's threads, as `top -H` shows them; agents know only the numbers
 * in their own pid namespace. The kernel shows both only for single threads
 * (/proc/PID/task/TID/status), so each thread is looked up once, when the stream reports it. Looks
 * take at most a hundredth of the time; a process with very many threads is looked at in portions.
 * A thread that ends before it was looked up keeps its container's number, marked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"

/* threads of one process; the numbers of further ones stay unknown */
#define THREAD_IDS_MAX	 32768u
#define THREAD_IDS_LOOKS 2048u /* files that one look reads */
/* Added to a number that is known only in the container. Numbers so marked are above all tids of
 * the kernel and below those of virtual threads. */
#define THREAD_ID_FOREIGN 0x40000000u

struct thread_ids;

/* @task_dfd is /proc/PID/task; takes it. NULL without memory. */
struct thread_ids *thread_ids_new(int task_dfd);
struct thread_ids *thread_ids_free(struct thread_ids *t);
DEFINE_FREEP(struct thread_ids, thread_ids_free);

/* The stream has reported a thread by its container's number; @java_id 0 = unknown. Looks a new
 * one up. */
void thread_ids_reported(struct thread_ids *t, uint32_t ns_tid, uint64_t java_id, uint64_t now_ns);
/* The host's number; with THREAD_ID_FOREIGN if it is unknown. */
uint32_t thread_ids_host(const struct thread_ids *t, uint32_t ns_tid);
/* The container's number for a host's number; 0 = unknown. */
uint32_t thread_ids_container(const struct thread_ids *t, uint32_t host_tid);
