/*
 * The host's numbers of a container's threads, as `top -H` shows them: the agent says the numbers
 * that its own pid namespace gives. The kernel says both only thread by thread
 * (/proc/PID/task/TID/status), so all are looked at, each once, when the stream tells of a new one.
 * Looks take one part of a hundred of the time, and a process with very many threads is looked at
 * bit by bit. A thread that is gone before anybody looked keeps its container's number, marked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"

#define THREAD_IDS_MAX	 32768u /* threads of one process; beyond that numbers are not known */
#define THREAD_IDS_LOOKS 2048u /* files read in one look */
/* Of a number that is the container's alone: above all tids of the kernel, below virtual threads.
 */
#define THREAD_ID_FOREIGN 0x40000000u

struct thread_ids;

/* @task_dfd: /proc/PID/task; taken. NULL without memory. */
struct thread_ids *thread_ids_new(int task_dfd);
struct thread_ids *thread_ids_free(struct thread_ids *t);
DEFINE_FREEP(struct thread_ids, thread_ids_free);

/* A thread is told of, by its container's number; @java_id 0 = not known. Looks, if it is a new
 * one. */
void thread_ids_told(struct thread_ids *t, uint32_t ns_tid, uint64_t java_id, uint64_t now_ns);
/* The host's number; one with THREAD_ID_FOREIGN = not known. */
uint32_t thread_ids_host(const struct thread_ids *t, uint32_t ns_tid);
/* The container's number of one by the host's; 0 = not known. */
uint32_t thread_ids_container(const struct thread_ids *t, uint32_t host_tid);
