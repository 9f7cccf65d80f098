/*
 * Bugs of HotSpot that would make an action of ours harmful: the versions that have each, and what
 * we do instead. Both ends use this table: kindling-inject before an attach, the agent before it
 * uses an optional feature. No I/O, no allocation; linked into the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 8u352 = {8, 352}, 17.0.5 = {17, 5}; feature 0 = unknown, treated as without bugs */
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
	const char *source; /* "JDK-8225690"; several numbers if they were fixed together */
	const char *harm; /* what happens */
	const char *answer; /* what we do instead */
	/* for older features: the first update with the fix */
	struct jdk_version fixes[JDK_FIXES_MAX];
	int32_t good_from; /* the first feature release without the bug; INT32_MAX = none yet */
};
extern const struct jdk_bug jdk_bugs[JDK_BUG_COUNT];

bool jdk_bug_affects(enum jdk_bug_id bug, struct jdk_version v);
/* Returns the first version without the bug, of @v's own feature release if it has one; feature 0 =
 * none. */
struct jdk_version jdk_bug_fixed_in(enum jdk_bug_id bug, struct jdk_version v);

/*
 * Makes a version of the numbers in HotSpot's own tables (Abstract_VM_Version). JDK 8 calls itself
 * 25.<update> there and has no security number: pass NULL for it.
 */
struct jdk_version jdk_version_of(int32_t major, int32_t minor, const int32_t *security);
