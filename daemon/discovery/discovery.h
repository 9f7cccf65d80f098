/*
 * Finds JVMs: by exec events from BPF if the kernel allows it, and by scans of /proc at the start and
 * every scan_interval, which without BPF are the only source. A process is looked at several times
 * after its exec (1, 2, 5, ... ms), because a JVM maps libjvm a millisecond later, and can be
 * attached to only 10 to 50 ms later. on_jvm() is called once per (pid, start time).
 */
#pragma once

#include "daemon/core/config.h"
#include "daemon/core/loop.h"
#include "daemon/discovery/jvm.h"

struct discovery;
struct look;
struct discovery_ops {
	/*
	 * Called for a JVM when it catches SIGQUIT and so can be attached to; or after five seconds
	 * if it still does not (-Xrs), which the injector's preflight then reports to the user. If it
	 * returns false it is called again for this process after ten seconds or more.
	 */
	bool (*on_jvm)(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns);
	/* Any process has ended, with this status of wait(2); only with BPF. May be NULL. */
	void (*on_exit)(void *userdata, pid_t pid, int status);
};

/* @look: borrowed; examines processes. 0 or -errno. */
int discovery_new(struct loop *loop, const struct config *config, struct look *look,
		  const struct discovery_ops *ops, void *userdata, struct discovery **ret);
struct discovery *discovery_free(struct discovery *d);
DEFINE_FREEP(struct discovery, discovery_free);
/* Makes the first scan begin with these processes, in their order. To be called before the loop runs.
 * Takes @pids, which is malloc'ed or NULL. */
void discovery_look_first(struct discovery *d, pid_t *pids, uint32_t n);
/* Calls on_jvm() for @pid again, after ten seconds or more. */
void discovery_ask_again(struct discovery *d, pid_t pid);
/* "bpf" or "scan"; *ret_why: why it is not bpf, "" with bpf. */
const char *discovery_source(const struct discovery *d, const char **ret_why);
/*
 * Processes called java whose memory map the kernel does not let kindling read, so that nobody
 * knows whether they are JVMs: kindlingd lacks CAP_SYS_PTRACE, or a capability that they have
 * (ptrace(2), "Ptrace access mode checking"). Writes up to @max pids; returns how many there are.
 */
uint32_t discovery_denied(const struct discovery *d, pid_t *pids, uint32_t max);
/* The number of times that a process was examined. Processes that begin all the time drive it up. */
uint64_t discovery_probes(const struct discovery *d);
