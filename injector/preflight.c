/*
 * Everything that may say no before anything is sent to the target. A SIGQUIT to a process that
 * does not catch it ends it, and one to another runtime that does (Go, for one) ends it as well.
 */
#include "injector/inject.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/owner.h"
#include "daemon/core/profilers.h"
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
		return fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT,
				 "the process is stopped; it is tried again when it runs");
	default:
		return 0;
	}
}

/* Root of the target's user namespace: it keeps directory and library, so that no other uid that
 * shares this /tmp can put something in their place. */
static void find_keeper(struct inject *in)
{
	char map[4096];

	in->keeper_uid = in->uid;
	in->keeper_gid = in->gid;
	if (proc_read(in->proc_dfd, "uid_map", map, sizeof(map)) <= 0 ||
	    proc_map_root(map, &in->keeper_uid) < 0)
		return;
	if (proc_read(in->proc_dfd, "gid_map", map, sizeof(map)) > 0)
		(void)proc_map_root(map, &in->keeper_gid);
}

/*
 * Supplementary groups decide too about what it may write: an emptyDir of a pod with fsGroup. They
 * are this process's from here on; it needs none of its own, and must not write where only those
 * let it. Where they cannot be set nothing more is allowed than before.
 */
static void take_groups(const char *status)
{
	char text[4096], *save = NULL;
	gid_t groups[256];
	size_t n = 0;

	if (!proc_status_field(status, "Groups:", text, sizeof(text)))
		return;
	for (char *word = strtok_r(text, " ", &save); word && n < ARRAY_SIZE(groups);
	     word = strtok_r(NULL, " ", &save))
		groups[n++] = (gid_t)strtoul(word, NULL, 10);
	(void)setgroups(n, groups);
}

static int read_ids(struct inject *in, const char *status)
{
	char text[256], *last;

	if (!proc_status_field(status, "NSpid:", text, sizeof(text)))
		return fault_set(in->fault, ENOSYS, FAULT_PREFLIGHT,
				 "the kernel shows no NSpid (before 4.1)");
	last = strrchr(text, '\t');
	in->ns_pid = (pid_t)strtol(last ? last + 1 : text, NULL, 10);
	/* effective ids: field 2 of "Uid: real effective saved fs" */
	if (!proc_status_field(status, "Uid:", text, sizeof(text)) ||
	    sscanf(text, "%*u %u", &in->uid) != 1 ||
	    !proc_status_field(status, "Gid:", text, sizeof(text)) ||
	    sscanf(text, "%*u %u", &in->gid) != 1)
		return fault_set(in->fault, EPROTO, FAULT_PREFLIGHT,
				 "no uid and gid in /proc/%d/status", in->pid);
	find_keeper(in);
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
				 "pid %d is another process by now", in->pid);
	in->start_time = proc_start_time(stat);
	r = read_ids(in, status);
	return r < 0 ? r : check_state(in, stat);
}

static int check_runtime(struct inject *in)
{
	int r = maps_read(in->proc_dfd, &in->maps);

	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "read maps of process %d: ", in->pid);
	if (in->maps.runtime == RUNTIME_NONE)
		return fault_set(in->fault, ENOEXEC, FAULT_PREFLIGHT,
				 "process %d is no JVM: no libjvm.so is mapped", in->pid);
	if (in->maps.runtime == RUNTIME_OPENJ9) {
		fault_set(in->fault, EOPNOTSUPP, FAULT_PREFLIGHT,
			  "openj9: this JVM is not supported yet");
		in->fault->flags |= FAULT_PERMANENT;
		return -EOPNOTSUPP;
	}
	return 0;
}

static int owner_forbids(struct inject *in, const char *sentence)
{
	fault_set(in->fault, EPERM, FAULT_PREFLIGHT, "%s", sentence);
	in->fault->flags |= FAULT_PERMANENT;
	return -EPERM;
}

static char cmdline[256 * 1024], environment[256 * 1024];

/* What the words of the command line and the variables say; the flags themselves know better. */
static int read_options(struct inject *in, struct options *o, size_t *ret_environ_len)
{
	ssize_t n = proc_read(in->proc_dfd, "cmdline", cmdline, sizeof(cmdline));
	ssize_t m = proc_read(in->proc_dfd, "environ", environment, sizeof(environment));
	struct vmflag flags[] = {
		{ "DisableAttachMechanism", 1, false, 0 },
		{ "EnableDynamicAgentLoading", 1, false, 0 },
		{ "ReduceSignalUsage", 1, false, 0 },
		{ "CRaCCheckpointTo", 8, false, 0 },
	};

	*ret_environ_len = m > 0 ? (size_t)m : 0;
	options_read(o, cmdline, n > 0 ? (size_t)n : 0, environment, *ret_environ_len);
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

static int check_options(struct inject *in)
{
	struct options o = OPTIONS_NULL;
	size_t len;
	int r = read_options(in, &o, &len);

	if (in->loads && owner_says_no(environment, len))
		return owner_forbids(in, "its owner says no: " OWNER_VARIABLE
					 " is set in its environment");
	if (o.disable_attach == 1)
		return owner_forbids(in,
				     "its owner forbids attaching: -XX:+DisableAttachMechanism");
	if (o.dynamic_loading == 0 && in->loads)
		return owner_forbids(in,
				     "its owner forbids agents: -XX:-EnableDynamicAgentLoading");
	if (o.crac && in->loads)
		return owner_forbids(
			in,
			"crac: it is to be checkpointed (-XX:CRaCCheckpointTo), which open pipes prevent");
	if (in->looks && r < 0)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "read the options of process %d: ", in->pid);
	return 0;
}

static int check_signal(struct inject *in)
{
	struct options o = OPTIONS_NULL;
	char status[16384];
	size_t len;

	if (attach_has_socket(in))
		return 0;
	if (proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (proc_signal_mask(status, "SigCgt:") & 1ull << (SIGQUIT - 1))
		return 0;
	if (in->looks && in->root_dfd < 0)
		return fault_set(in->fault, EACCES, FAULT_PREFLIGHT,
				 "it does not catch SIGQUIT, and its /tmp cannot be seen: ");
	(void)read_options(in, &o, &len);
	if (o.xrs)
		return owner_forbids(in, "it was started with -Xrs and has no attach socket");
	/* before the JVM has its handler the signal would end it */
	fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT, "it does not catch SIGQUIT (yet)");
	in->fault->flags |= FAULT_RETRY_SOON;
	return -EAGAIN;
}

/* Never a no: the agent samples on a signal that nobody has (engine/cpu_timer.c). Whether we stay
 * away all the same is the daemon's to say, targets.foreign_profilers. */
static int check_profilers(struct inject *in)
{
	static char text[PROFILERS_TEXT_SIZE + 64];
	char names[PROFILERS_TEXT_SIZE];
	profilers_set set = 0;
	struct maps maps;
	int r;

	if (!in->looks)
		return 0;
	r = maps_read(in->proc_dfd, &maps);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "read maps of process %d: ", in->pid);
	profilers_read_maps(in->proc_dfd, &set);
	profilers_read_options(in->proc_dfd, &set);
	if (set) {
		snprintf(text, sizeof(text), "%s is in it; we sample on a signal of our own",
			 profilers_text(set, names));
		in->found = text;
	}
	return 0;
}

/* What is read in its memory comes behind the signal: a JVM that has its handler has read all its
 * options, and its tables are what they will be. */
/* clang-format off */
const struct check preflight_checks[] = {
	{ "process", preflight_identity, "it runs",
	  "it is looked at again when it runs", NULL },
	{ "runtime", check_runtime, "it is a HotSpot JVM",
	  "a HotSpot JVM, 8 or later", NULL },
	{ "cgroup", cgroup_check, "there is room for our threads and memory, and it is not frozen",
	  "raise its pids.max or its memory limit, or thaw it", NULL },
	{ "user", nproc_check, "its user may have more threads",
	  "raise its RLIMIT_NPROC", NULL },
	{ "copies", copies_check, "few copies of the agent from earlier attaches are in it",
	  "restart it", NULL },
	{ "signal", check_signal, "it catches SIGQUIT, or its attach socket is there",
	  "start it without -Xrs; a JVM in its first moments is tried again soon", NULL },
	{ "jdk", jdk_check, "no known bug of its JDK is in the way",
	  "restart it, best with a newer update of its JDK", NULL },
	{ "owner", check_options, "no option and no variable of its owner forbids it",
	  "start it without that option or variable", NULL },
	{ "seccomp", seccomp_check, "no filter ends it at a call of the agent's",
	  "allow that call in its seccomp profile, or let it fail with an error",
	  "kindling doctor --read-seccomp, as root; it stops a sleeping thread for some 50 us" },
	{ "events", events_check,
	  "it gives all events: cpu, wall, thread names, monitors, parks, allocations", NULL, NULL },
	{ "profilers", check_profilers, "no other profiler is in it",
	  "targets.foreign_profilers: share", NULL },
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
