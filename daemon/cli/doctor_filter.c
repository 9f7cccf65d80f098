/*
 * What the seccomp filter of a JVM does, found without touching the JVM: from the configuration of
 * its container or of its systemd service. See doctor_filter.h.
 */
#include "daemon/cli/doctor_filter.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/discovery/container.h"
#include "daemon/discovery/filter.h"
#include "daemon/discovery/jvm.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"

#define UNIT_BYTES_MAX 65536

extern char **environ;

/* The number of the process's filters. More than the configuration's one means that the process
 * installed one itself, which no file describes. 0 = the kernel, older than 5.9, does not count
 * them. */
static int count_filters(int pid_dfd)
{
	char text[8192];
	const char *line;

	if (proc_read(pid_dfd, "status", text, sizeof(text)) <= 0)
		return 0;
	line = strstr(text, "\nSeccomp_filters:");
	return line ? atoi(line + strlen("\nSeccomp_filters:")) : 0;
}

static enum filter_effect by_bundle(int proc_dfd, int pid_dfd, const struct jvm *jvm,
				    const char **ret_call, const char **ret_who)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;

	if (count_filters(pid_dfd) > 1)
		return FILTER_UNKNOWN;
	text = container_bundle(proc_dfd, jvm, &len);
	*ret_who = "the seccomp profile of its container";
	return text ? filter_of_bundle(text, len, ret_call) : FILTER_UNKNOWN;
}

/* Asks the host's systemd for a unit's filter; systemctl has a deadline of its own. */
static size_t ask_systemd(char *unit, char *buf, size_t size)
{
	char show[] = "show", properties[] = "--property=SystemCallFilter,SystemCallErrorNumber",
	     end[] = "--", program[] = "systemctl";
	char *argv[] = { program, show, properties, end, unit, NULL };
	posix_spawn_file_actions_t actions;
	size_t have = 0;
	pid_t child;
	int fds[2], r;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return 0;
	posix_spawn_file_actions_init(&actions);
	r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0)
		r = posix_spawnp(&child, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	while (r == 0 && have < size - 1 && (n = read(fds[0], buf + have, size - 1 - have)) > 0)
		have += (size_t)n;
	close(fds[0]);
	if (r == 0)
		(void)waitpid(child, NULL, 0);
	buf[have] = '\0';
	return have;
}

static enum filter_effect by_unit(int pid_dfd, const struct jvm *jvm, const char **ret_call,
				  const char **ret_who)
{
	char cgroup[8192], unit[256], text[UNIT_BYTES_MAX];

	/* a process in another pid namespace may be a service of another systemd */
	if (jvm->ns_pid != jvm->pid || proc_read(pid_dfd, "cgroup", cgroup, sizeof(cgroup)) <= 0 ||
	    !filter_unit_name(cgroup, unit, sizeof(unit)) ||
	    ask_systemd(unit, text, sizeof(text)) == 0)
		return FILTER_UNKNOWN;
	*ret_who = "SystemCallFilter= of its systemd unit";
	return filter_of_unit(text, ret_call);
}

void doctor_look_at_filter(pid_t pid, struct doctor_check *check)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int pid_dfd = proc_open(proc_dfd, pid);
	const char *call = "", *who = "";
	enum filter_effect effect;
	struct jvm jvm;

	if (pid_dfd < 0 || jvm_probe(proc_dfd, pid, &jvm) <= 0)
		return;
	effect = by_bundle(proc_dfd, pid_dfd, &jvm, &call, &who);
	if (effect == FILTER_UNKNOWN && !jvm.container_id[0])
		effect = by_unit(pid_dfd, &jvm, &call, &who);
	if (effect == FILTER_UNKNOWN)
		return;
	if (effect == FILTER_DEADLY) {
		snprintf(check->verdict, sizeof(check->verdict), "no");
		snprintf(check->finding, sizeof(check->finding),
			 "%s would kill the JVM when the agent calls %s()", who, call);
		snprintf(
			check->change, sizeof(check->change),
			"allow that system call there, or make it fail with an error code instead");
	} else {
		snprintf(check->verdict, sizeof(check->verdict), "ok");
		snprintf(check->finding, sizeof(check->finding),
			 "%s does not kill the JVM for any system call of the agent", who);
		check->change[0] = '\0';
	}
}
