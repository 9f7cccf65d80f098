/* See jdk_bugs.h. */
#include "proto/jdk_bugs.h"

#include <stddef.h>

#define NEVER INT32_MAX

/*
 * If it is uncertain which release first has a fix, the table has the first release that certainly
 * has it: that costs an older JVM a feature, while the opposite error could crash it.
 */
const struct jdk_bug jdk_bugs[JDK_BUG_COUNT] = {
	[JDK_BUG_SOCKET] = {
		.source = "JDK-8225690, JDK-8235211",
		.harm = "once its attach socket was deleted it makes no other, prints a thread dump at "
			"every attempt, and early backports can deadlock",
		.answer = "refused when its socket was deleted",
		.fixes = { { 8, 352 }, { 11, 13 } },
		.good_from = 14,
	},
	/* OpenJDK has the fix in 11.0.17 and 17.0.5, Oracle's JDK from 11.0.21 and 17.0.9 on */
	[JDK_BUG_TRACE] = {
		.source = "JDK-8283849",
		.harm = "AsyncGetCallTrace ends the JVM when it meets a method that was thrown away",
		.answer = "AsyncGetCallTrace is not used",
		.fixes = { { 8, 352 }, { 11, 21 }, { 17, 9 } },
		.good_from = 19,
	},
	/* some updates make the flag behind it reentrant; they are not worth a distinction */
	[JDK_BUG_TWO_TRACES] = {
		.source = "JDK-8329103, JDK-8339133, JDK-8352649",
		.harm = "AsyncGetCallTrace interrupted by another profiler's can end the JVM",
		.answer = "AsyncGetCallTrace is not used beside another profiler",
		.good_from = NEVER,
	},
	[JDK_BUG_COMPILED] = {
		.source = "JDK-8173361, JDK-8305165",
		.harm = "CompiledMethodLoad events of code that is thrown away meanwhile end the JVM",
		.answer = "the event is not asked for",
		.fixes = { { 8, 382 } },
		.good_from = 9,
	},
	/* backported to 8u and 11u in 2025, to releases that we do not know */
	[JDK_BUG_STUBS] = {
		.source = "JDK-8212155",
		.harm = "turning DynamicCodeGenerated events on while a stub is made ends the JVM",
		.answer = "the event is not asked for, and stubs have no names",
		.good_from = 17,
	},
};

bool jdk_bug_affects(enum jdk_bug_id id, struct jdk_version v)
{
	const struct jdk_bug *bug = &jdk_bugs[id];

	if (v.feature <= 0 || v.feature >= bug->good_from)
		return false;
	for (int i = 0; i < JDK_FIXES_MAX; i++)
		if (bug->fixes[i].feature == v.feature)
			return v.update < bug->fixes[i].update;
	return true;
}

struct jdk_version jdk_bug_fixed_in(enum jdk_bug_id id, struct jdk_version v)
{
	const struct jdk_bug *bug = &jdk_bugs[id];

	for (int i = 0; i < JDK_FIXES_MAX; i++)
		if (bug->fixes[i].feature == v.feature)
			return bug->fixes[i];
	return (struct jdk_version){ bug->good_from == NEVER ? 0 : bug->good_from, 0 };
}

struct jdk_version jdk_version_of(int32_t major, int32_t minor, const int32_t *security)
{
	if (!security)
		return (struct jdk_version){ 8, minor };
	return (struct jdk_version){ major, *security };
}
