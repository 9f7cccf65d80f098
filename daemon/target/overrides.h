/*
 * What operators asked for by `kindling attach` and `kindling detach`: one entry per process, found
 * by pid and start time, and kept in a file so that it survives a restart of the daemon. A reboot
 * makes all of them void.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/fault.h"
#include "daemon/ground/proc.h"

#define OVERRIDES_MAX 1024 /* as many as there may be targets */

struct override {
	pid_t pid;
	uint64_t start_time;
	bool attach; /* else detach */
	uid_t uid; /* of the operator */
	uint64_t real_s;
	uint64_t rules_hash; /* of the rules at that time */
};

struct overrides {
	char path[300]; /* "" = kept only in memory */
	char boot_id[PROC_BOOT_ID_SIZE];
	struct override *list;
	unsigned n;
};

/* Reads the file "wishes" in @dir, which keeps that name so that daemons of all versions find it.
 * Entries of another boot or of processes that have ended are dropped. A file that cannot be read
 * is logged and treated as empty. */
void overrides_open(struct overrides *w, const char *dir);
void overrides_close(struct overrides *w); /* frees; the file stays */
const struct override *overrides_find(const struct overrides *w, pid_t pid, uint64_t start_time);
/* Adds an entry, which replaces an earlier one of the same process. 0, -ENOSPC or -ENOMEM; a file
 * that cannot be written is only logged. */
int overrides_put(struct overrides *w, const struct override *override);
void overrides_remove(struct overrides *w, pid_t pid, uint64_t start_time);
/* "detached by uid 0 at 2026-11-21T08:15:02Z; `kindling attach 4711` profiles it again" */
void overrides_explain(const struct override *override, struct fault *ret);
