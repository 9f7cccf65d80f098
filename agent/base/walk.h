/* The result of a stack walk, and the names of methods and mappings in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "proto/wire.h"

#define WALK_FRAMES_MAX 2048
#define WALK_NAME_BYTES 40
/* smallest length of a name that was cut: names are cut between characters */
#define WALK_NAME_WHOLE (WALK_NAME_BYTES - 3)

/* One raw frame as the handler can get it: 16 bytes. */
struct walk_frame {
	uint64_t where; /* method handle of the walker (method kinds), or a pc (WIRE_KIND_NATIVE),
			 * or a const char * label (other kinds) */
	int32_t bci; /* method kinds; -1 unknown */
	uint8_t kind; /* enum wire_kind */
	uint8_t pad[3];
};

struct walk {
	struct walk_frame *frames; /* WALK_FRAMES_MAX; leaf first */
	uint32_t n;
	const char
		*broken; /* NULL = reached the root; else a short static cause, "no_java_frame" */
	uint64_t virtual_id; /* Thread.threadId() of the virtual thread that ran here; 0 = none */
	char virtual_name[WALK_NAME_BYTES]; /* UTF-8, cut to fit; "" = no name */
};

/* The number on the wire of the virtual thread whose Thread.threadId() is @id. */
static inline uint32_t walk_virtual_number(uint64_t id)
{
	return WIRE_VIRTUAL_TID | (uint32_t)(id & (WIRE_VIRTUAL_TID - 1));
}

/* A walk calls this after each frame of the stack, which may stand for several Java frames
 * (inlining). @sp: the caller's stack pointer. true = the walk ends here. */
typedef bool walk_enough_fn(struct walk *w, uint64_t sp);

/* The names of a method. The strings belong to the function that fills this in. */
struct walk_method {
	const char *class_name; /* "java/lang/String" */
	const char *name;
	const char *signature;
	const char *file; /* "" unknown */
};

/* An executable mapping of a file. */
struct walk_mapping {
	uint64_t start, end, file_offset;
	const char *path; /* as in /proc/self/maps */
	uint8_t build_id[WIRE_BUILD_ID_MAX];
	uint8_t build_id_len;
	uint32_t generation; /* changes when another file is mapped at the same range */
};
