/*
 * The state of a task on disk, beside the sink's spool: <spool>/<key>.task. A task that was started
 * ends with a profile or a reason, even if kindling-upload dies in between. An ended one is
 * remembered for a while, because an OAP hands its tasks out again.
 */
#pragma once

#include "daemon/upload/skywalking_words.h"

enum skywalking_step {
	SKYWALKING_NEW, /* kindlingd has not confirmed the recording yet */
	SKYWALKING_RECORDS,
	SKYWALKING_TAKES, /* the profile is about to be file @seq of the spool */
	SKYWALKING_TELLS, /* @why is to be reported to the OAP */
	SKYWALKING_OVER,
};

struct skywalking_saved {
	uint64_t magic;
	uint32_t crc; /* timestamp of the report */
	uint32_t step; /* enum skywalking_step */
	uint64_t key;
	uint64_t begin_real_ns; /* when the task came */
	uint64_t seq;
	uint64_t start_time; /* together with the pid it identifies the JVM */
	uint32_t pid, reserved;
	struct skywalking_instance id;
	struct skywalking_task task;
	char why[256]; /* "" = no error */
};

/* The key of a task of one JVM; always the same for the same two. */
uint64_t skywalking_key(const char *task_id, uint32_t pid, uint64_t start_time);
/* Writes the file; fills in magic and CRC. 0 or -errno. */
int skywalking_save(int dfd, struct skywalking_saved *s);
void skywalking_unsave(int dfd, uint64_t key);
/* Calls @fn for each valid file and removes the others. */
typedef void skywalking_saved_fn(void *userdata, const struct skywalking_saved *s);
void skywalking_load(int dfd, skywalking_saved_fn *fn, void *userdata);
