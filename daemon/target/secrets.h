/*
 * The secret of an agent: 128 random bits, which are in the START of its attach and which every
 * HELLO must repeat. FIFOs of the right names alone prove nothing, because any process of the
 * container can make them. After a restart the daemon knows the secrets from the file "agents" in
 * the state directory, which only root may read.
 * docs/decisions/0013.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/ground/proc.h"
#include "proto/wire.h"

struct secret {
	pid_t pid;
	uint64_t start_time;
	bool former; /* made by an earlier daemon; this one has not attached to the process yet */
	uint8_t bytes[WIRE_SECRET_BYTES];
};

struct secrets {
	char path[300]; /* "" = kept only in memory */
	char boot_id[PROC_BOOT_ID_SIZE];
	struct secret *list;
	unsigned n, room;
	unsigned lines; /* in the file, including those of ended processes */
};

/* Reads the file "agents" in @dir. Lines of another boot or of ended processes are dropped. */
void secrets_open(struct secrets *s, const char *dir);
void secrets_close(struct secrets *s); /* frees the table; the file stays */
/* Makes a secret for a process that is about to be attached to, which replaces its last one. 0
 * or -errno. */
int secrets_make(struct secrets *s, pid_t pid, uint64_t start_time, uint8_t ret[WIRE_SECRET_BYTES]);
/* The secret, WIRE_SECRET_BYTES, valid until the next call of another function; NULL = no attach
 * is known. */
const uint8_t *secrets_find(const struct secrets *s, pid_t pid, uint64_t start_time);
/* Has only an earlier daemon attached to the process, and not this one? */
bool secrets_is_former(const struct secrets *s, pid_t pid, uint64_t start_time);
void secrets_forget(struct secrets *s, pid_t pid, uint64_t start_time);
