/*
 * Everything that may say no before anything is sent to the target. A SIGQUIT to a process that does
 * not catch it ends it; a JVM whose attach listener cannot start its thread ends itself.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TASKS_NEEDED 4 /* attach listener, our thread, and a margin for what starts meanwhile */

int preflight_flag(const char *list, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	int found = -1;

	for (size_t i = 0; i + 5 + name_len <= len; i++) {
		if (memcmp(list + i, "-XX:", 4) != 0 || (list[i + 4] != '+' && list[i + 4] != '-') ||
		    memcmp(list + i + 5, name, name_len) != 0)
			continue;
		if (i + 5 + name_len < len && strchr(" \t\n'\"", list[i + 5 + name_len]) == NULL &&
		    list[i + 5 + name_len] != '\0')
			continue; /* a longer name */
		found = list[i + 4] == '+';
	}
	return found;
}

static int check_identity(struct inject *in, char *status, size_t size)
{
	char stat[1024], text[64];
	char *last;

	if (proc_read(in->proc_dfd, "stat", stat, sizeof(stat)) <= 0 ||
	    proc_read(in->proc_dfd, "status", status, size) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (in->start_time && proc_start_time(stat) != in->start_time)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "pid %d is another process by now",
				 in->pid);
	in->start_time = proc_start_time(stat);
	switch (proc_state(stat)) {
	case 'Z':
	case 'X':
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	case 'T':
	case 't':
		return fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
				 "the process is stopped; it is tried again when it runs");
	default:
		break;
	}
	if (!proc_status_field(status, "NSpid:", text, sizeof(text)))
		return fault_set(in->fault, ENOSYS, FAULT_PREFLIGHT, "the kernel shows no NSpid (before 4.1)");
	last = strrchr(text, '\t');
	in->ns_pid = (pid_t)strtol(last ? last + 1 : text, NULL, 10);
	/* effective ids: field 2 of "Uid: real effective saved fs" */
	if (!proc_status_field(status, "Uid:", text, sizeof(text)) ||
	    sscanf(text, "%*u %u", &in->uid) != 1 ||
	    !proc_status_field(status, "Gid:", text, sizeof(text)) ||
	    sscanf(text, "%*u %u", &in->gid) != 1)
		return fault_set(in->fault, EPROTO, FAULT_PREFLIGHT, "no uid and gid in /proc/%d/status",
				 in->pid);
	return 0;
}

static int refuse_flags(struct inject *in, const char *list, size_t len, const char *where)
{
	if (preflight_flag(list, len, "DisableAttachMechanism") == 1)
		return fault_set(in->fault, EPERM, FAULT_PREFLIGHT,
				 "its owner forbids attaching: -XX:+DisableAttachMechanism (%s)", where);
	if (preflight_flag(list, len, "EnableDynamicAgentLoading") == 0)
		return fault_set(in->fault, EPERM, FAULT_PREFLIGHT,
				 "its owner forbids agents: -XX:-EnableDynamicAgentLoading (%s)", where);
	return 0;
}

static int check_flags(struct inject *in)
{
	static const char *const variables[] = { "JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=",
						 "_JAVA_OPTIONS=" };
	static char text[256 * 1024];
	ssize_t n = proc_read(in->proc_dfd, "cmdline", text, sizeof(text));
	int r;

	if (n > 0) {
		r = refuse_flags(in, text, (size_t)n, "command line");
		if (r < 0)
			goto permanent;
	}
	n = proc_read(in->proc_dfd, "environ", text, sizeof(text));
	for (char *p = text; n > 0 && p < text + n; p += strlen(p) + 1) {
		for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
			if (strncmp(p, variables[i], strlen(variables[i])) != 0)
				continue;
			r = refuse_flags(in, p, strlen(p), variables[i]);
			if (r < 0)
				goto permanent;
		}
	}
	return 0;
permanent:
	in->fault->flags |= FAULT_PERMANENT;
	return r;
}

/* The socket is there already: no signal is needed, and none is sent. */
static bool has_socket(const struct inject *in)
{
	char path[48];
	struct stat st;
	CLEANUP(fd_closep) int fd = -1;

	snprintf(path, sizeof(path), "tmp/.java_pid%d", in->ns_pid);
	fd = files_open(in, in->root_dfd, path, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == in->uid;
}

/* pids.max of its cgroup: v1's own hierarchy or v2, by the path /proc/PID/cgroup gives. */
static int check_tasks(struct inject *in)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/pids", "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	char text[8192], *save = NULL;

	if (proc_read(in->proc_dfd, "cgroup", text, sizeof(text)) <= 0)
		return 0;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *path = strchr(line, ':');
		bool ours;

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path || strstr(path, ".."))
			continue;
		ours = strstr(line, ":pids:") || strstr(line, ",pids") || strncmp(line, "0::", 3) == 0;
		for (size_t i = 0; ours && i < ARRAY_SIZE(mounts); i++) {
			char file[4096], max[32], current[32];

			snprintf(file, sizeof(file), "%s%s/pids.max", mounts[i], path + 1);
			if (proc_read(AT_FDCWD, file, max, sizeof(max)) <= 0 || strncmp(max, "max", 3) == 0)
				continue;
			snprintf(file, sizeof(file), "%s%s/pids.current", mounts[i], path + 1);
			if (proc_read(AT_FDCWD, file, current, sizeof(current)) <= 0)
				continue;
			if (strtoull(current, NULL, 10) + TASKS_NEEDED > strtoull(max, NULL, 10))
				return fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
						 "no_thread_headroom: %llu of %llu tasks (pids.max) are in use",
						 strtoull(current, NULL, 10), strtoull(max, NULL, 10));
		}
	}
	return 0;
}

int preflight(struct inject *in)
{
	static char status[16384];
	int r = check_identity(in, status, sizeof(status));

	if (r == 0)
		r = check_flags(in);
	if (r == 0)
		r = check_tasks(in);
	if (r < 0)
		return r;
	if (!has_socket(in) && !(proc_signal_mask(status, "SigCgt:") & 1ull << (SIGQUIT - 1))) {
		/* before the JVM has its handler, or for ever with -Xrs: the signal would end it */
		r = fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
			      "it does not catch SIGQUIT: still starting, or started with -Xrs");
		in->fault->flags |= FAULT_RETRY_SOON;
	}
	return r;
}
