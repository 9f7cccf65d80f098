/*
 * Bugs of HotSpot that make something we do harmful: which versions have each, and what we do about
 * it. One table for both ends: kindling-inject asks it before an attach, the agent before it uses
 * what it could do without. No I/O, no allocation; links into the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 8u352 = {8, 352}, 17.0.5 = {17, 5}; feature 0 = unknown, and has no bug that we know of */
struct jdk_version {
	int32_t feature, update;
};

enum jdk_bug_id {
	JDK_BUG_SOCKET,
	JDK_BUG_TRACE,
	JDK_BUG_TWO_TRACES,
	JDK_BUG_COMPILED,
	JDK_BUG_STUBS,
	JDK_BUG_COUNT
};

#define JDK_FIXES_MAX 3

struct jdk_bug {
	const char *source; /* "JDK-8225690"; more than one where they are fixed together */
	const char *harm; /* what happens */
	const char *answer; /* what we do */
	struct jdk_version fixes[JDK_FIXES_MAX]; /* the first good update of older features */
	int32_t good_from; /* the first feature that never had it; INT32_MAX = none yet */
};
extern const struct jdk_bug jdk_bugs[JDK_BUG_COUNT];

bool jdk_bug_affects(enum jdk_bug_id bug, struct jdk_version v);
/* The first version that is good, of @v's own feature where there is one; feature 0 = there is
 * none. */
struct jdk_version jdk_bug_fixed_in(enum jdk_bug_id bug, struct jdk_version v);

/*
 * From the numbers that HotSpot has in its own tables (Abstract_VM_Version). JDK 8 calls itself
 * 25.<update> there and has no security number: pass NULL for it.
 */
struct jdk_version jdk_version_of(int32_t major, int32_t minor, const int32_t *security);
