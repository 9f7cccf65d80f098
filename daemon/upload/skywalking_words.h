/*
 * The messages between kindling and a SkyWalking OAP: from structs to the messages of
 * proto/skywalking.proto and back. Messages from the OAP are not trusted; everything that parses
 * them is fuzzed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKYWALKING_NAME_MAX    256 /* including the NUL */
#define SKYWALKING_ID_MAX      128
#define SKYWALKING_TASKS_MAX   16 /* read from one answer; an OAP has one task for each service */
#define SKYWALKING_CHUNK       (1u << 20) /* bytes of content in one message */
#define SKYWALKING_SECONDS_MAX 1200 /* the longest task, as in SkyWalking's agents */

struct skywalking_instance {
	char service[SKYWALKING_NAME_MAX], name[SKYWALKING_NAME_MAX];
};

/* A task that the OAP gives an instance. */
struct skywalking_task {
	char id[SKYWALKING_ID_MAX];
	unsigned seconds;
	unsigned events; /* bits 1 << enum wire_event */
	uint64_t interval_ns; /* of CPU time; 0 = not given */
	uint64_t lock_min_ns, wall_interval_ns,
		alloc_interval; /* likewise; alloc_interval is in bytes */
	int64_t created_ms;
	char why[160]; /* why the task cannot run; "" = it can */
};

enum skywalking_verdict {
	SKYWALKING_GO,
	SKYWALKING_FAILED,
	SKYWALKING_OVERSIZE,
};

/* Encode messages into malloc'ed memory; NULL = no memory. */
uint8_t *skywalking_ping(const struct skywalking_instance *i, size_t *ret_len);
struct skywalking_property {
	const char *key, *value;
};
uint8_t *skywalking_properties(const struct skywalking_instance *i,
			       const struct skywalking_property *p, size_t n, size_t *ret_len);
uint8_t *skywalking_task_query(const struct skywalking_instance *i, int64_t last_created_ms,
			       size_t *ret_len);
/* @size: bytes of content that follow. @error: why there is no content, or NULL. */
uint8_t *skywalking_meta(const struct skywalking_instance *i, const char *task_id, size_t size,
			 const char *error, size_t *ret_len);
uint8_t *skywalking_content(const void *bytes, size_t len, size_t *ret_len);

/* Reads the tasks newer than @last_created_ms from an answer. Returns their number, or -EBADMSG. */
int skywalking_tasks(const void *message, size_t len, int64_t last_created_ms,
		     struct skywalking_task tasks[SKYWALKING_TASKS_MAX]);
/* Reads the answer to the metadata. -EBADMSG: it is not such a message. */
int skywalking_answer(const void *message, size_t len, enum skywalking_verdict *ret);
/* Parses "event=cpu,lock,interval=5ms,alloc=2k" into @t and ignores unknown arguments. */
void skywalking_arguments(const char *text, struct skywalking_task *t);
