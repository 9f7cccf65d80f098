/*
 * Everything that may say no before anything is sent to the target. A SIGQUIT to a process that
 * does not catch it ends it, and one to another runtime that does (Go, for one) ends it as well.
 */
#include "injector/inject.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/owner.h"

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
	int runtime = proc_runtime(in->proc_dfd);

	if (runtime < 0)
		return fault_set(in->fault, -runtime, FAULT_PREFLIGHT,
				 "read maps of process %d: ", in->pid);
	if (runtime == PROC_NO_JVM)
		return fault_set(in->fault, ENOEXEC, FAULT_PREFLIGHT,
				 "process %d is no JVM: no libjvm.so is mapped", in->pid);
	if (runtime == PROC_OPENJ9) {
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

static int check_options(struct inject *in)
{
	static char cmdline[256 * 1024], environ[256 * 1024];
	struct options o = OPTIONS_NULL;
	ssize_t n = proc_read(in->proc_dfd, "cmdline", cmdline, sizeof(cmdline));
	ssize_t m = proc_read(in->proc_dfd, "environ", environ, sizeof(environ));

	options_read(&o, cmdline, n > 0 ? (size_t)n : 0, environ, m > 0 ? (size_t)m : 0);
	in->xrs = o.xrs;
	if (in->loads && m > 0 && owner_says_no(environ, (size_t)m))
		return owner_forbids(in, "its owner says no: " OWNER_VARIABLE
					 " is set in its environment");
	if (o.disable_attach == 1)
		return owner_forbids(in,
				     "its owner forbids attaching: -XX:+DisableAttachMechanism");
	if (o.dynamic_loading == 0 && in->loads)
		return owner_forbids(in,
				     "its owner forbids agents: -XX:-EnableDynamicAgentLoading");
	if (in->looks && (n < 0 || m < 0))
		return fault_set(in->fault, n < 0 ? (int)-n : (int)-m, FAULT_PREFLIGHT,
				 "read %s of process %d: ", n < 0 ? "cmdline" : "environ", in->pid);
	return 0;
}

static int check_signal(struct inject *in)
{
	char status[16384];

	if (attach_has_socket(in))
		return 0;
	if (proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return fault_set(in->fault, ESRCH, FAULT_IDENTITY, "process %d has ended", in->pid);
	if (proc_signal_mask(status, "SigCgt:") & 1ull << (SIGQUIT - 1))
		return 0;
	if (in->looks && in->root_dfd < 0)
		return fault_set(in->fault, EACCES, FAULT_PREFLIGHT,
				 "it does not catch SIGQUIT, and its /tmp cannot be seen: ");
	if (in->xrs)
		return owner_forbids(in, "it was started with -Xrs and has no attach socket");
	/* before the JVM has its handler the signal would end it */
	fault_set(in->fault, EAGAIN, FAULT_PREFLIGHT, "it does not catch SIGQUIT (yet)");
	in->fault->flags |= FAULT_RETRY_SOON;
	return -EAGAIN;
}

/* clang-format off */
const struct check preflight_checks[] = {
	{ "process", preflight_identity, "it runs",
	  "it is looked at again when it runs" },
	{ "runtime", check_runtime, "it is a HotSpot JVM",
	  "a HotSpot JVM, 8 or later" },
	{ "owner", check_options, "no option and no variable of its owner forbids it",
	  "start it without that option or variable" },
	{ "cgroup", cgroup_check, "there is room for our threads, and it is not frozen",
	  "raise its pids.max, or thaw it" },
	{ "signal", check_signal, "it catches SIGQUIT, or its attach socket is there",
	  "start it without -Xrs; a JVM in its first moments is tried again soon" },
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
