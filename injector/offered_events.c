/*
 * Reports, before an attach, which events a JVM can provide besides CPU samples, and why it cannot
 * provide the others. The agent uses the same criteria (agent/events/). A missing event is no
 * reason to refuse the JVM.
 */
#include "injector/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "injector/vmclasses.h"
#include "injector/vmflags.h"
#include "injector/vmtables.h"

#define ALLOCATIONS_SINCE 11

/* Does the JVM write a class archive when it ends? -errno = unknown. */
static int injector_events_archives_classes(struct inject *in)
{
	struct vmflag flags[] = {
		{ "ArchiveClassesAtExit", 8, false, 0 },
		{ "AOTCacheOutput", 8, false, 0 },
		{ "AutoCreateSharedArchive", 1, false, 0 },
	};
	char mode[16] = "";
	int r = vmflags_read(in, flags, ARRAY_SIZE(flags));

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (flags[i].found && flags[i].value)
			return 1;
	(void)vmflags_text(in, "AOTMode", mode, sizeof(mode));
	return strcmp(mode, "record") == 0;
}

static const char *without_monitors(struct inject *in)
{
	int used = vmclasses_virtual_threads(in);

	if (used < 0)
		return "monitors only if no virtual threads are in use, which is unknown";
	if (used)
		return "no monitors: virtual threads are in use, and monitor events would make "
		       "each of their yields slower until the JVM ends (events.lock.monitors: "
		       "always collects them anyway)";
	return NULL;
}

/* The frames of the Zero VM have no frame pointer, as the agent finds too (agent/hotspot/layout.c).
 */
static bool is_zero_vm(struct inject *in)
{
	struct vmtables_field fields[] = {
		{ .type = "JavaFrameAnchor", .field = "_last_Java_sp" },
		{ .type = "JavaFrameAnchor", .field = "_last_Java_fp" },
	};
	struct vmmemory *m;

	if (vmmemory_of(in, &m) < 0)
		return false;
	vmtables_fields(m, fields, ARRAY_SIZE(fields));
	return fields[0].found && !fields[1].found;
}

static int injector_events_unknown(struct inject *in, int r)
{
	static const char why[] =
		"it is unknown which events can be collected: the JVM's memory cannot be read";

	if (r == -EACCES || r == -EPERM)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT, "%s: ", why);
	in->found = why;
	return 0;
}

int events_check(struct inject *in)
{
	static char text[600];
	struct jdk_version version = { 0, 0 };
	const char *monitors, *parks = NULL, *allocations = NULL;
	int archives;

	if (!in->only_checks)
		return 0;
	archives = injector_events_archives_classes(in);
	if (archives < 0)
		return injector_events_unknown(in, archives);
	if (is_zero_vm(in)) {
		in->found = "cpu and thread names, most stacks without a Java frame; no other "
			    "events: this is a Zero VM, whose frames are of another kind";
		return 0;
	}
	if (archives)
		parks = "no parks: this JVM archives its classes when it ends, and would print a warning about the agent's class";
	if (vmflags_version(in, &version) == 0 && version.feature < ALLOCATIONS_SINCE)
		allocations = "no allocations: they need JDK 11 or later";
	monitors = without_monitors(in);
	if (!monitors && !parks && !allocations)
		return 0;
	snprintf(text, sizeof(text), "cpu, wall, thread names%s%s%s%s%s%s%s%s%s",
		 monitors ? "" : ", monitors", parks ? "" : ", parks",
		 allocations ? "" : ", allocations", monitors ? "; " : "", monitors ? monitors : "",
		 parks ? "; " : "", parks ? parks : "", allocations ? "; " : "",
		 allocations ? allocations : "");
	in->found = text;
	return 0;
}
