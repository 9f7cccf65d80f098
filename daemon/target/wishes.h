/*
 * What people asked for by `kindling attach` and `detach`: one entry a process, by pid and start
 * time, kept in a file so that it outlives the daemon. A reboot ends them all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/fault.h"
#include "daemon/ground/proc.h"

#define WISHES_MAX 1024 /* as many as there may be targets */

struct wish {
	pid_t pid;
	uint64_t start_time;
	bool attach; /* else detach */
	uid_t uid; /* whose */
	uint64_t real_s;
	uint64_t rules_hash; /* of the rules at that time */
};

struct wishes {
	char path[300]; /* "" = kept in memory alone */
	char boot_id[PROC_BOOT_ID_SIZE];
	struct wish *list;
	unsigned n;
};

/* @dir: where the file "wishes" lies. What is not of this boot or of no living process is dropped.
 * A file that cannot be read or parsed is said in the log, and as if it were not there. */
void wishes_open(struct wishes *w, const char *dir);
void wishes_close(struct wishes *w); /* frees; the file stays */
const struct wish *wishes_find(const struct wishes *w, pid_t pid, uint64_t start_time);
/* In the place of an earlier one of the same process. -ENOSPC, -ENOMEM; the file: said in the log.
 */
int wishes_put(struct wishes *w, const struct wish *wish);
void wishes_remove(struct wishes *w, pid_t pid, uint64_t start_time);
/* "detached by uid 0 at 2026-11-21T08:15:02Z; kindling attach 4711 takes it in again" */
void wishes_explain(const struct wish *wish, struct fault *ret);
