/*
 * Containers that the container runtime has not answered for: each is asked about again, after a
 * pause that doubles with each failure of its own. Their order keeps a container whose answer
 * always fails from holding up the others. Pure.
 */
#pragma once

#include <stdint.h>
#include "daemon/core/warden.h"
#include "daemon/ground/clock.h"

#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MAX_NS   (60 * NS_PER_S)
#define AGAIN_MAX      1024 /* as many as there can be JVMs with a container of their own */

struct again_entry {
	char container_id[WARDEN_NAMES_ID_SIZE];
	unsigned failures; /* questions about this container that failed */
	uint64_t next_mono_ns;
};

struct again {
	struct again_entry *list;
	unsigned n, room;
};

/* Frees the list, not @a. */
void again_deinit(struct again *a);
/* Adds a container, to be asked about AGAIN_FIRST_NS after @now; if it is there already nothing
 * changes. If there are AGAIN_MAX of them, or no memory, it is left out. */
void again_add(struct again *a, const char *container_id, uint64_t now_mono_ns);
/* A question about it has failed: the next one comes later. */
void again_fail(struct again *a, const char *container_id, uint64_t now_mono_ns);
void again_remove(struct again *a, const char *container_id);
/* The container to ask about next, whose time may be in the future; NULL = there is none. Valid
 * until @a changes. */
const struct again_entry *again_next(const struct again *a);
