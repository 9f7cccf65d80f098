/*
 * The messages between kindling and a SkyWalking OAP: structs to the messages of
 * proto/skywalking.proto, and back. Messages from the OAP are not trusted; all of the parsing is
 * fuzzed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKYWALKING_NAME_MAX    256 /* with the NUL */
#define SKYWALKING_ID_MAX      128
#define SKYWALKING_TASKS_MAX   16 /* tasks in one answer; OAPs have one for each service */
#define SKYWALKING_CHUNK       (1u << 20) /* of content in one message */
#define SKYWALKING_SECONDS_MAX 1200 /* limit of SkyWalking's agents: longer names are cut */

struct skywalking_instance {
	char service[SKYWALKING_NAME_MAX], name[SKYWALKING_NAME_MAX];
};

/* A task of an OAP. */
struct skywalking_task {
	char id[SKYWALKING_ID_MAX];
	unsigned seconds;
	unsigned events; /* bits 1 << enum wire_event */
	uint64_t interval_ns; /* of CPU time; 0 = not given */
	uint64_t lock_min_ns, wall_interval_ns,
		alloc_interval; /* likewise; the last one in bytes */
	int64_t created_ms;
	char why[160]; /* why it cannot run; "" = it can */
};

enum skywalking_verdict {
	SKYWALKING_GO,
	SKYWALKING_FAILED,
	SKYWALKING_OVERSIZE,
};

/* Messages, malloc'ed; NULL = no memory. */
uint8_t *skywalking_ping(const struct skywalking_instance *i, size_t *ret_len);
struct skywalking_property {
	const char *key, *value;
};
uint8_t *skywalking_properties(const struct skywalking_instance *i,
			       const struct skywalking_property *p, size_t n, size_t *ret_len);
uint8_t *skywalking_task_query(const struct skywalking_instance *i, int64_t last_created_ms,
			       size_t *ret_len);
/* @size: of the content that follows; @error: NULL, or why there is none. */
uint8_t *skywalking_meta(const struct skywalking_instance *i, const char *task_id, size_t size,
			 const char *error, size_t *ret_len);
uint8_t *skywalking_content(const void *bytes, size_t len, size_t *ret_len);

/* The tasks among an answer's commands that are newer than @last_created_ms. Their number, or
 * -EBADMSG. */
int skywalking_tasks(const void *message, size_t len, int64_t last_created_ms,
		     struct skywalking_task tasks[SKYWALKING_TASKS_MAX]);
/* The answer to metadata. -EBADMSG: not such a message. */
int skywalking_answer(const void *message, size_t len, enum skywalking_verdict *ret);
/* Parses "event=cpu,lock,interval=5ms,alloc=2k" into @t; unknown arguments are ignored. */
void skywalking_arguments(const char *text, struct skywalking_task *t);
