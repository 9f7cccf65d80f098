/*
 * The circuit breaker: when a JVM has crashed soon after an attach, kindling attaches to no similar
 * JVM for a while. Similar JVMs, a cohort, have the same image by its digest (by its name and build
 * of libjvm if no file of the runtime has a digest; on the host the same main class, libjvm and its
 * build), the same JDK, version of kindling, uid and owner. So the whole host is never blocked. The
 * cohorts are in a file, for the next daemon.
 *
 * The owner is the container's namespace and name, without a pod its name, else its id: so a
 * container that is created again is blocked as well. A crash can be faked; so it affects no other
 * owner, and takes none of their places: an owner with COHORTS_OWN cohorts replaces one of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/discovery/jvm.h"
#include "daemon/ground/fault.h"

#define COHORTS_MAX   64
#define COHORTS_OWN   8 /* of one namespace, container outside of pods, or user of the host */
#define COHORT_SIZE   600
#define COHORT_OWNER  128
#define CRASH_SOON_NS (600 * 1000000000ull) /* a crash in this time after an attach counts */

struct cohort {
	char name[COHORT_SIZE];
	char owner[COHORT_OWNER];
	char reason[160];
	uint64_t until_real_ns;
	unsigned crashes;
};

struct crashes {
	char path[300]; /* "" = kept only in memory */
	struct cohort *list; /* COHORTS_MAX entries; NULL until there is one */
	unsigned n;
	uint64_t count;
};

/* Reads the file "blocked" in @dir. Lines that have expired, or are invalid, are dropped. */
void crashes_open(struct crashes *c, const char *dir, uint64_t real_ns);
void crashes_close(struct crashes *c); /* frees the table; the file stays */
/* The signal of a crash, if wait(2)'s @status is one; else 0. */
int crash_signal(int status);
/* Blocks the cohort of @jvm. If the table is full it replaces the first to expire of the owner
 * with the most. */
void crash_block(struct crashes *c, const struct jvm *jvm, const char *reason,
		 uint64_t until_real_ns);
/* The cohort that blocks @jvm now; NULL = none. */
const struct cohort *crash_find(const struct crashes *c, const struct jvm *jvm, uint64_t real_ns);
/* Forgets the cohorts whose time is over. None is blocked for longer than @most_ns from now, which
 * it would be if the clock was wrong when it crashed, and has been set back since. */
void crash_expire(struct crashes *c, uint64_t real_ns, uint64_t most_ns);
void crash_explain(const struct cohort *cohort, struct fault *ret);
