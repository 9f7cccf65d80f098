/*
 * Checks the limits of the target's cgroups before an attach: there must be room for the threads
 * that an attach starts (JDK 17 and 25 end themselves when the attach listener cannot start its
 * thread) and for the agent's memory (at the limit the kernel kills the JVM), and the group must
 * not be frozen (a process frozen by cgroup v2 shows state S and would take SIGQUIT much later). A
 * limit that cannot be read counts as no limit.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/proc.h"

#define TASKS_NEEDED 4 /* the attach listener, the agent's thread, and a margin */
/* the agent's ring and tables, and what the JVM itself needs to load it */
#define BYTES_NEEDED (12ull << 20)

static ssize_t read_group(const struct inject *in, const char *hierarchy, const char *path,
			  const char *name, char *buf, size_t size)
{
	char file[4096];

	if (snprintf(file, sizeof(file), "%s%s/%s", hierarchy, path, name) >= (int)sizeof(file))
		return -ENAMETOOLONG;
	return proc_read(in->cgroup_dfd, file, buf, size);
}

static int check_tasks(struct inject *in, const char *hierarchy, const char *path)
{
	char max[32], current[32];
	unsigned long long limit, used;

	if (read_group(in, hierarchy, path, "pids.max", max, sizeof(max)) <= 0 ||
	    strncmp(max, "max", 3) == 0 ||
	    read_group(in, hierarchy, path, "pids.current", current, sizeof(current)) <= 0)
		return 0;
	limit = strtoull(max, NULL, 10);
	used = strtoull(current, NULL, 10);
	if (used + TASKS_NEEDED <= limit)
		return 0;
	return fault_set(
		in->fault, EAGAIN, FAULT_PREFLIGHT,
		"too few threads are left: %llu of the %llu that its cgroup allows (pids.max) are in use",
		used, limit);
}

static unsigned long long cgroup_read_number(const struct inject *in, const char *hierarchy,
					     const char *path, const char *name)
{
	char text[32];

	/* "max" or a missing file: no limit */
	if (read_group(in, hierarchy, path, name, text, sizeof(text)) <= 0 || text[0] < '0' ||
	    text[0] > '9')
		return UINT64_MAX;
	return strtoull(text, NULL, 10);
}

/* Bytes that the kernel reclaims first: file pages that were not used for a while. */
static unsigned long long cgroup_reclaimable(const struct inject *in, const char *hierarchy,
					     const char *path, const char *key)
{
	char text[8192], number[32];

	if (read_group(in, hierarchy, path, "memory.stat", text, sizeof(text)) <= 0 ||
	    !proc_field(text, key, number, sizeof(number)))
		return 0;
	return strtoull(number, NULL, 10);
}

static int check_memory(struct inject *in, const char *hierarchy, const char *path)
{
	bool v1 = strcmp(hierarchy, "memory") == 0;
	unsigned long long max, used, free;

	max = cgroup_read_number(in, hierarchy, path, v1 ? "memory.limit_in_bytes" : "memory.max");
	used = cgroup_read_number(in, hierarchy, path,
				  v1 ? "memory.usage_in_bytes" : "memory.current");
	if (max == UINT64_MAX || used == UINT64_MAX)
		return 0;
	free = cgroup_reclaimable(in, hierarchy, path,
				  v1 ? "total_inactive_file " : "inactive_file ");
	used = used > free ? used - free : 0;
	if (used + BYTES_NEEDED <= max)
		return 0;
	return fault_set(
		in->fault, EAGAIN, FAULT_PREFLIGHT,
		"too little memory is left: %llu of %llu MB of its cgroup are in use, the agent needs %llu",
		used >> 20, max >> 20, BYTES_NEEDED >> 20);
}

static bool is_frozen(const struct inject *in, const char *hierarchy, const char *path)
{
	char text[256];

	if (read_group(in, hierarchy, path, "cgroup.events", text, sizeof(text)) > 0 &&
	    strstr(text, "frozen 1"))
		return true;
	return read_group(in, hierarchy, path, "freezer.state", text, sizeof(text)) > 0 &&
	       strncmp(text, "THAWED", 6) != 0;
}

static int check_frozen(struct inject *in, const char *hierarchy, const char *path)
{
	return is_frozen(in, hierarchy, path)
		       ? fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
				   "the JVM is frozen: its cgroup has been frozen")
		       : 0;
}

static int check_group(struct inject *in, const char *hierarchy, const char *path)
{
	int r = check_frozen(in, hierarchy, path);

	if (r == 0)
		r = check_tasks(in, hierarchy, path);
	return r < 0 ? r : check_memory(in, hierarchy, path);
}

typedef int (*check_fn)(struct inject *in, const char *hierarchy, const char *path);

/* Checks a group and all its parents, each of which has its own limit. @path is shortened on the
 * way. */
static int check_hierarchy(struct inject *in, check_fn check, const char *hierarchy, char *path)
{
	char *slash;
	int r = 0;

	do {
		slash = strrchr(path, '/');
		if (slash && slash[1] == '\0')
			*slash = '\0';
		r = check(in, hierarchy, path);
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (r == 0 && slash);
	return r;
}

static bool cgroup_is_wanted(const char *names)
{
	return strcmp(names, "pids") == 0 || strcmp(names, "freezer") == 0 ||
	       strcmp(names, "memory") == 0;
}

static int cgroup_walk(struct inject *in, check_fn check)
{
	char text[8192], path[4096], *save = NULL;
	int r = 0;

	if (in->cgroup_dfd < 0 || proc_read(in->proc_dfd, "cgroup", text, sizeof(text)) <= 0)
		return 0;
	/* lines "7:pids:/a/b" (v1) and "0::/a/b" (v2); "/../x" is outside our cgroup namespace */
	for (char *line = strtok_r(text, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':');
		char *group = names ? strchr(names + 1, ':') : NULL;

		if (!group || strstr(group, "..") || strlen(group) > sizeof(path))
			continue;
		*group++ = '\0';
		snprintf(path, sizeof(path), "%s", group);
		if (cgroup_is_wanted(names + 1))
			r = check_hierarchy(in, check, names + 1, path);
		if (names[1] == '\0') {
			r = check_hierarchy(in, check, ".", path);
			snprintf(path, sizeof(path), "%s", group);
			if (r == 0)
				r = check_hierarchy(in, check, "unified", path);
		}
	}
	return r;
}

int cgroup_check(struct inject *in)
{
	return cgroup_walk(in, check_group);
}

bool cgroup_is_frozen(const struct inject *in)
{
	struct fault f = { 0 };
	struct inject copy = *in; /* so that the fault of an earlier check is kept */

	copy.fault = &f;
	return cgroup_walk(&copy, check_frozen) < 0;
}
