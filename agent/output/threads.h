/*
 * Names of threads, sent once and again when they change. A thread's first sample sends the name
 * the kernel knows (15 bytes); the full Java names follow from one pass over all Java threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A sample of @tid is about to be written. @name: what it says it is called, "" = not said. */
void threads_seen(uint32_t tid, const char *name);
/* An event names it as the owner of a lock; 0 = none. */
void threads_owner(uint32_t tid);
/* A sample of a virtual thread is about to be written; the number it goes by on the wire. */
uint32_t threads_virtual(uint64_t id, const char *name);
/* The whole name of a thread, from itself or from who waits for it. */
void threads_named(uint32_t tid, uint64_t java_id, const char *name);
/* The names sent so far are in the pipe; or they are not, and are said again. */
void threads_written(void);
void threads_lost(void);
/* There are names that threads_refresh() has still to say. */
bool threads_are_missing(void);
/* Often: full Java names of new threads, as soon as that is cheap. @force: renames as well. */
void threads_refresh(bool force);
void threads_sweep(void); /* say which threads ended */
void threads_forget(void); /* the daemon has forgotten all names */
void threads_free(void);
uint64_t threads_bytes(void);
/* One pass over all Java threads: the names that are new. */
void threads_name_all(void);
/* One Java thread, as jni_names_pass() reports it. */
void threads_java_name(uint32_t tid, uint64_t java_id, const char *name);
