/*
 * Finds JVMs: by exec events from BPF where the kernel allows it, and by a scan of /proc at start
 * and every scan_interval, which is the only source without BPF. A process is looked at a few times
 * after its exec (1, 2, 5, ... ms) because libjvm is mapped a millisecond later and can be attached
 * to 10 to 50 ms later; on_jvm() is called once per (pid, start time).
 */
#pragma once

#include "daemon/core/config.h"
#include "daemon/core/loop.h"
#include "daemon/discovery/jvm.h"

struct discovery;
struct look;
struct discovery_ops {
	/*
	 * Called for a JVM that catches SIGQUIT, so that it can be attached to, and for one that
	 * still does not five seconds after it was found (-Xrs): the injector's preflight reports
	 * that to the user. Once per process, unless it returns false: then again after ten seconds
	 * or more.
	 */
	bool (*on_jvm)(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns);
	/* Any process ended, with this wait status; only with BPF. May be NULL. */
	void (*on_exit)(void *userdata, pid_t pid, int status);
};

/* @look: borrowed; performs the looks at processes. */
int discovery_new(struct loop *loop, const struct config *config, struct look *look,
		  const struct discovery_ops *ops, void *userdata, struct discovery **ret);
struct discovery *discovery_free(struct discovery *d);
DEFINE_FREEP(struct discovery, discovery_free);
/* The first scan begins with these, in their order; it has to be to come yet. Takes @pids, which are
 * malloc'ed or NULL. */
void discovery_look_first(struct discovery *d, pid_t *pids, uint32_t n);
/* Calls on_jvm() for @pid again, after ten seconds or more. */
void discovery_ask_again(struct discovery *d, pid_t pid);
/* "bpf" or "scan", and the reason why not bpf ("" with bpf) */
const char *discovery_source(const struct discovery *d, const char **ret_why);
/*
 * Processes called java whose memory map the kernel does not let kindling read, so that nobody
 * knows whether they are JVMs: kindlingd lacks CAP_SYS_PTRACE, or a capability that they have
 * (ptrace(2), "Ptrace access mode checking"). Writes up to @max pids; returns how many there are.
 */
uint32_t discovery_denied(const struct discovery *d, pid_t *pids, uint32_t max);
