/*
 * Names of threads, sent with the first sample and again when they change. First comes the kernel's
 * name (15 bytes); the full Java names follow from a pass over all Java threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A sample of @tid is about to be written. @name: the one in the sample, "" = none. */
void threads_seen(uint32_t tid, const char *name);
/* An event has @tid as the owner of a lock; 0 = none. */
void threads_owner(uint32_t tid);
/* A sample of a virtual thread is about to be written. Returns its number on the wire. */
uint32_t threads_virtual(uint64_t id, const char *name);
/* Records the full name of a thread, which was read by that thread or by one that waits for it. */
void threads_named(uint32_t tid, uint64_t java_id, const char *name);
/* The pending names were written; or they were dropped, and will be sent again. */
void threads_written(void);
void threads_lost(void);
/* Are there threads whose Java names are not sent yet? */
bool threads_are_missing(void);
/* Called often. Finds the full Java names of new threads by a pass over all threads, at times when
 * that is cheap. @force: makes a pass now, which also finds changed names. */
void threads_refresh(bool force);
void threads_sweep(void); /* sends the ends of threads */
void threads_forget(void); /* a new epoch: the daemon has forgotten all names */
void threads_free(void);
uint64_t threads_bytes(void);
/* One pass over all Java threads; sends the names that are new. */
void threads_name_all(void);
/* One Java thread, as jni_names_pass() reports it. */
void threads_java_name(uint32_t tid, uint64_t java_id, const char *name);
