/*
 * The circuit breaker: after a JVM has crashed soon after an attach, kindling stays away from
 * similar ones, its cohort: the same image by its digest (by its name and build of libjvm if no
 * file of the runtime has a digest; on the host: the same main class, libjvm and build of it), the
 * same JDK and version of kindling, the same uid and owner. It never blocks the whole host. The
 * cohorts are kept in a file, so that a restarted daemon knows them.
 *
 * The owner is the namespace and the name of the container, its name if there is no pod, else its
 * id: a recreated container is blocked as well. A crash can be faked, so it has no effect on other
 * owners, and takes no slot of theirs in the table: an owner with COHORTS_OWN cohorts replaces one
 * of its own.
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
#define CRASH_SOON_NS (600 * 1000000000ull) /* after the attach */

struct cohort {
	char name[COHORT_SIZE];
	char owner[COHORT_OWNER];
	char reason[160];
	uint64_t until_real_ns;
	unsigned crashes;
};

struct crashes {
	char path[300]; /* "" = kept in memory alone */
	struct cohort *list; /* COHORTS_MAX of them once there is one */
	unsigned n;
	uint64_t count;
};

/* @dir: where the file "blocked" lies. What has expired, or is no such line, is dropped. */
void crashes_open(struct crashes *c, const char *dir, uint64_t real_ns);
void crashes_close(struct crashes *c); /* frees; the file stays */
/* Does wait(2)'s @status tell of a crash? Its signal, else 0. */
int crash_signal(int status);
/* Blocks the cohort of @jvm; when the table is full, in place of the one that ends first of the
 * owner with the most. */
void crash_block(struct crashes *c, const struct jvm *jvm, const char *reason,
		 uint64_t until_real_ns);
/* The block that holds for @jvm now, NULL = none. */
const struct cohort *crash_find(const struct crashes *c, const struct jvm *jvm, uint64_t real_ns);
void crash_expire(struct crashes *c, uint64_t real_ns);
void crash_explain(const struct cohort *cohort, struct fault *ret);
