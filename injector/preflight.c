/*
 * The checks before anything is sent to the target. SIGQUIT ends a process that does not handle it,
 * and also ends programs of some runtimes that do handle it, such as Go's.
 */
#include "injector/inject.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/owner.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/profilers.h"
#include "injector/seccomp.h"
#include "injector/vmflags.h"

static int check_state(struct inject *in, const char *stat)
{
	switch (proc_state(stat)) {
	case 'Z':
	case 'X':
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	case 'T':
	case 't':
		return fault_set(
			in->fault, EAGAIN, FAULT_PREFLIGHT,
			"the process is stopped (SIGSTOP); kindlingd tries again when it runs");
	default:
		return 0;
	}
}

/* Finds root of the target's user namespace. It will own directory and library, so that no other
 * uid that shares this /tmp can replace them. */
static void preflight_find_ns_root(struct inject *in)
{
	char map[4096];

	in->ns_root_uid = in->uid;
	in->ns_root_gid = in->gid;
	if (proc_read(in->proc_dfd, "uid_map", map, sizeof(map)) <= 0 ||
	    proc_map_root(map, &in->ns_root_uid) < 0)
		return;
	if (proc_read(in->proc_dfd, "gid_map", map, sizeof(map)) > 0)
		(void)proc_map_root(map, &in->ns_root_gid);
}

/*
 * Replaces this process's supplementary groups by the target's, which also determine where the
 * target may write, for example in an emptyDir of a pod with fsGroup. This process needs none of
 * its own, and must not write where only those would allow it. If they cannot be set, it may write
 * no more than before.
 */
static void take_groups(const char *status)
{
	char text[4096], *save = NULL;
	gid_t groups[256];
	size_t n = 0;

	if (!proc_field(status, "Groups:", text, sizeof(text)))
		return;
	for (char *word = strtok_r(text, " ", &save); word && n < ARRAY_SIZE(groups);
	     word = strtok_r(NULL, " ", &save))
		groups[n++] = (gid_t)strtoul(word, NULL, 10);
	(void)setgroups(n, groups);
}

static int read_ids(struct inject *in, const char *status)
{
	char text[256], *last;

	if (!proc_field(status, "NSpid:", text, sizeof(text)))
		return fault_set(in->fault, ENOSYS, FAULT_PREFLIGHT,
				 "the kernel shows no NSpid (before 4.1)");
	last = strrchr(text, '\t');
	in->ns_pid = (pid_t)strtol(last ? last + 1 : text, NULL, 10);
	/* effective ids: field 2 of "Uid: real effective saved fs" */
	if (!proc_field(status, "Uid:", text, sizeof(text)) ||
	    sscanf(text, "%*u %u", &in->uid) != 1 ||
	    !proc_field(status, "Gid:", text, sizeof(text)) ||
	    sscanf(text, "%*u %u", &in->gid) != 1)
		return fault_set(in->fault, EPROTO, FAULT_PREFLIGHT,
				 "no uid and gid in /proc/%d/status", in->pid);
	preflight_find_ns_root(in);
	take_groups(status);
	return 0;
}

int preflight_identity(struct inject *in)
{
	char stat[1024], status[16384];
	int r;

	if (proc_read(in->proc_dfd, "stat", stat, sizeof(stat)) <= 0 ||
	    proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (in->start_time && proc_start_time(stat) != in->start_time)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY,
				 "process %d has ended, and its pid belongs to another process now",
				 in->pid);
	in->start_time = proc_start_time(stat);
	r = read_ids(in, status);
	return r < 0 ? r : check_state(in, stat);
}

static int check_runtime(struct inject *in)
{
	int r = maps_read(in->proc_dfd, &in->maps);

	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "cannot read /proc/%d/maps: ", in->pid);
	if (in->maps.runtime == RUNTIME_NONE)
		return fault_set(in->fault, ENOEXEC, FAULT_PREFLIGHT,
				 "process %d is not a JVM: it has not loaded libjvm.so", in->pid);
	if (in->maps.runtime == RUNTIME_OPENJ9) {
		fault_set(in->fault, EOPNOTSUPP, FAULT_PREFLIGHT,
			  "this is an OpenJ9 JVM, which kindling does not support yet");
		in->fault->flags |= FAULT_PERMANENT;
		return -EOPNOTSUPP;
	}
	return 0;
}

static int preflight_forbidden(struct inject *in, const char *sentence)
{
	fault_set(in->fault, EPERM, FAULT_PREFLIGHT, "%s", sentence);
	in->fault->flags |= FAULT_PERMANENT;
	return -EPERM;
}

static char cmdline[256 * 1024], environment[256 * 1024];

/* Reads the options from command line and environment variables, then the more reliable flags in
 * memory. Returns 0, or -errno if the command line or the environment cannot be read. */
static int read_options(struct inject *in, struct options *o)
{
	ssize_t n = proc_read(in->proc_dfd, "cmdline", cmdline, sizeof(cmdline));
	ssize_t m = proc_read(in->proc_dfd, "environ", environment, sizeof(environment));
	struct vmflag flags[] = {
		{ "DisableAttachMechanism", 1, false, 0 },
		{ "EnableDynamicAgentLoading", 1, false, 0 },
		{ "ReduceSignalUsage", 1, false, 0 },
		{ "CRaCCheckpointTo", 8, false, 0 },
	};

	options_read(o, cmdline, n > 0 ? (size_t)n : 0, environment, m > 0 ? (size_t)m : 0);
	if (vmflags_read(in, flags, ARRAY_SIZE(flags)) == 0) {
		if (flags[0].found)
			o->disable_attach = flags[0].value != 0;
		if (flags[1].found)
			o->dynamic_loading = flags[1].value != 0;
		if (flags[2].found)
			o->xrs = flags[2].value != 0;
		if (flags[3].found)
			o->crac = flags[3].value != 0;
	}
	return n < 0 ? (int)n : m < 0 ? (int)m : 0;
}

static int preflight_check_options(struct inject *in)
{
	struct options o = OPTIONS_NULL;
	int r = read_options(in, &o);

	if (in->loads && owner_forbids(in->proc_dfd) > 0)
		return preflight_forbidden(in, "its owner forbids profiling: " OWNER_VARIABLE
					       " is set in its environment");
	if (o.disable_attach == 1)
		return preflight_forbidden(
			in,
			"its owner forbids attaching: the JVM was started with -XX:+DisableAttachMechanism");
	if (o.dynamic_loading == 0 && in->loads)
		return preflight_forbidden(
			in,
			"its owner forbids agents: the JVM was started with -XX:-EnableDynamicAgentLoading");
	if (o.crac && in->loads)
		return preflight_forbidden(
			in,
			"the JVM is to be checkpointed (CRaC, -XX:CRaCCheckpointTo), and open pipes of an agent would prevent that");
	if (in->only_checks && r < 0)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "cannot read the JVM options of process %d: ", in->pid);
	return 0;
}

static int check_signal(struct inject *in)
{
	struct options o = OPTIONS_NULL;
	char status[16384];

	if (attach_has_socket(in))
		return 0;
	if (proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (proc_signal_mask(status, "SigCgt:") & 1ull << (SIGQUIT - 1))
		return 0;
	if (in->only_checks && in->root_dfd < 0)
		return fault_set(in->fault, EACCES, FAULT_PREFLIGHT,
				 "the JVM does not handle SIGQUIT, and its /tmp cannot be read: ");
	(void)read_options(in, &o);
	if (o.xrs)
		return preflight_forbidden(
			in,
			"the JVM was started with -Xrs and has no attach socket, so it cannot be attached to");
	/* before the JVM has set its handler, the signal would end it */
	fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
		  "the JVM does not handle SIGQUIT yet, which an attach needs");
	in->fault->flags |= FAULT_RETRY_SOON;
	return -EAGAIN;
}

/* Another profiler is no reason to refuse: the agent samples with a signal that nobody else uses
 * (agent/engine/cpu_timer.c). The daemon decides whether to attach nevertheless
 * (targets.foreign_profilers). */
static int check_profilers(struct inject *in)
{
	static char text[PROFILERS_TEXT_SIZE + 64];
	char names[PROFILERS_TEXT_SIZE];
	profilers_set set = 0;
	struct maps maps;
	int r;

	if (!in->only_checks)
		return 0;
	r = maps_read(in->proc_dfd, &maps);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "cannot read /proc/%d/maps: ", in->pid);
	profilers_read_maps(in->proc_dfd, &set);
	profilers_read_options(in->proc_dfd, &set);
	if (set) {
		snprintf(text, sizeof(text),
			 "%s is loaded in the JVM too; kindling uses a signal that it does not use",
			 profilers_text(set, names));
		in->found = text;
	}
	return 0;
}

/* Checks that read the JVM's memory come after "signal": a JVM that handles SIGQUIT has read all
 * its options, and its tables no longer change. */
/* clang-format off */
const struct check preflight_checks[] = {
	{ "process", preflight_identity, "the process runs",
	  "let it run again (SIGCONT); kindlingd then tries again by itself", NULL },
	{ "runtime", check_runtime, "this is a HotSpot JVM",
	  "run the application on a HotSpot JVM, version 8 or later", NULL },
	{ "cgroup", cgroup_check, "the cgroup of the JVM has room for the agent's threads and memory, and is not frozen",
	  "raise pids.max or the memory limit of the JVM's cgroup, or thaw the cgroup", NULL },
	{ "user", nproc_check, "the JVM's user is below its limit of threads (RLIMIT_NPROC)",
	  "raise the limit of threads of the JVM's user (RLIMIT_NPROC, ulimit -u)", NULL },
	{ "copies", copies_check, "earlier attaches have not filled the JVM with old copies of the agent",
	  "restart the JVM", NULL },
	{ "signal", check_signal, "the JVM accepts attach requests: it handles SIGQUIT, or its attach socket exists",
	  "start the JVM without -Xrs; if it has only just started, kindlingd tries again by itself", NULL },
	{ "socket", attach_check_name, "nobody else uses the name of the JVM's attach socket",
	  "give each pod a /tmp of its own; remove the file if its process is dead", NULL },
	{ "jdk", jdk_check, "this version of the JDK has no known bug that makes attaching unsafe",
	  "restart the JVM, if possible with a newer update of its JDK", NULL },
	{ "owner", preflight_check_options, "no JVM option and no environment variable forbids profiling",
	  "start the JVM without that option or variable", NULL },
	{ "seccomp", seccomp_check, "no seccomp filter would kill the JVM for a system call of the agent",
	  "allow that system call in the seccomp profile, or make it fail with an error code instead",
	  "run as root: kindling doctor --read-seccomp; it stops one sleeping thread of the JVM for about 50 us" },
	{ "events", events_check,
	  "all events can be collected: cpu, wall, thread names, monitors, parks, allocations", NULL, NULL },
	{ "profilers", check_profilers, "no other profiler is loaded in the JVM",
	  "set targets.foreign_profilers: share", NULL },
};
/* clang-format on */
const size_t preflight_check_count = ARRAY_SIZE(preflight_checks);

int preflight(struct inject *in)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < preflight_check_count; i++)
		r = preflight_checks[i].run(in);
	return r;
}
