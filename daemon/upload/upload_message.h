/*
 * What kindlingd-data and kindling-upload say to each other over one SOCK_SEQPACKET: structs of a
 * fixed form. Neither believes the other: lengths are compared, texts have their end, JSON is
 * parsed anew.
 */
#pragma once

#include <stdint.h>
#include "proto/wire.h"

#define UPLOAD_FD	3 /* its number in kindling-upload */
#define UPLOAD_NAME_MAX 48
#define UPLOAD_TEXT_MAX (60u << 10)

enum upload_ask {
	UPLOAD_TICK, /* once a second */
	UPLOAD_TEST, /* send a small profile to the sink @name */
};

struct upload_question {
	uint32_t ask;
	uint32_t reserved;
	uint64_t settled_real_ns; /* the history is whole up to here */
	uint64_t
		not_stored[WIRE_EVENT_COUNT]; /* samples that did not reach it since the last one */
	char name[UPLOAD_NAME_MAX];
};

enum upload_say {
	UPLOAD_STATUS, /* @text: [{"name": ...}, ...], as /v1/status has it */
	UPLOAD_TESTED, /* what became of a test of @name */
};

struct upload_answer {
	uint32_t say;
	uint32_t ok; /* of a test */
	uint32_t len; /* of @text, without the NUL at its end */
	uint32_t reserved;
	char name[UPLOAD_NAME_MAX];
	char text[UPLOAD_TEXT_MAX]; /* only @len + 1 bytes are sent */
};
