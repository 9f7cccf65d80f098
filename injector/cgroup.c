/*
 * What the target's cgroups say: room for the threads that an attach starts (a JVM whose attach
 * listener cannot start its thread ends itself, JDK 17 and 25), and not frozen (a process frozen by
 * cgroup v2 shows state S, and would take SIGQUIT much later). What cannot be read says nothing.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define TASKS_NEEDED 4 /* attach listener, our thread, and a margin for what starts meanwhile */

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
	return fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
			 "no_thread_headroom: %llu of %llu tasks (pids.max) are in use", used,
			 limit);
}

static int check_frozen(struct inject *in, const char *hierarchy, const char *path)
{
	char text[256];

	if (read_group(in, hierarchy, path, "cgroup.events", text, sizeof(text)) > 0 &&
	    strstr(text, "frozen 1"))
		return fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
				 "frozen: its cgroup is frozen");
	if (read_group(in, hierarchy, path, "freezer.state", text, sizeof(text)) > 0 &&
	    strncmp(text, "THAWED", 6) != 0)
		return fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
				 "frozen: its cgroup is frozen");
	return 0;
}

/* A group and all above it: each has its own limit. @path is cut short on the way. */
static int check_hierarchy(struct inject *in, const char *hierarchy, char *path)
{
	char *slash;
	int r = 0;

	do {
		slash = strrchr(path, '/');
		if (slash && slash[1] == '\0')
			*slash = '\0';
		r = check_tasks(in, hierarchy, path);
		if (r == 0)
			r = check_frozen(in, hierarchy, path);
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (r == 0 && slash);
	return r;
}

int cgroup_check(struct inject *in)
{
	char text[8192], path[4096], *save = NULL;
	int r = 0;

	if (in->cgroup_dfd < 0 || proc_read(in->proc_dfd, "cgroup", text, sizeof(text)) <= 0)
		return 0;
	/* lines "7:pids:/a/b" (v1) and "0::/a/b" (v2); "/../x" is outside of what we can see */
	for (char *line = strtok_r(text, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':');
		char *group = names ? strchr(names + 1, ':') : NULL;

		if (!group || strstr(group, "..") || strlen(group) > sizeof(path))
			continue;
		*group++ = '\0';
		snprintf(path, sizeof(path), "%s", group);
		if (strcmp(names, ":pids") == 0 || strcmp(names, ":freezer") == 0)
			r = check_hierarchy(in, names + 1, path);
		if (names[1] == '\0') {
			r = check_hierarchy(in, ".", path);
			snprintf(path, sizeof(path), "%s", group);
			if (r == 0)
				r = check_hierarchy(in, "unified", path);
		}
	}
	return r;
}
