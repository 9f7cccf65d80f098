/* For tests: discovery with a made-up /proc, without BPF; the test calls the events. */
#pragma once

#include "daemon/discovery/discovery.h"

/* Like discovery_new(); takes @proc_dfd, also on failure. */
int discovery_new_at(struct loop *loop, const struct config *config,
		     const struct discovery_ops *ops, void *userdata, int proc_dfd,
		     struct discovery **ret);
void discovery_exec(struct discovery *d, pid_t pid, const char *comm, uint64_t mono_ns);
void discovery_exit(struct discovery *d, pid_t pid, uint64_t mono_ns);
