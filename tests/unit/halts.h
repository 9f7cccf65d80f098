/*
 * Ways to halt all threads of a process where they are: a signal, and the freezers of control
 * groups, as `docker pause` uses them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { HALT_SIGNAL, HALT_V2, HALT_V2_BESIDE_V1, HALT_V1, HALT_WAYS };

struct halt {
	const char *name;
	size_t way;
	pid_t pid;
	char group[64]; /* the process's own control group; "" = none */
};

/* Prepares to halt @pid in one of the ways, and prints why if this machine does not allow that.
 * halt_free() removes the control group after the process has ended. */
bool halt_new(struct halt *h, size_t way, pid_t pid);
void halt_free(struct halt *h);
/* Halts the process, and lets it go on. Both return before all of its threads have noticed. */
void halt_begin(const struct halt *h);
void halt_end(const struct halt *h);
