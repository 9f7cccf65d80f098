/*
 * The messages between kindlingd-data and kindling-upload over one SOCK_SEQPACKET: structs of fixed
 * layout. Neither side trusts the other: lengths are checked, texts are terminated, JSON is parsed
 * anew.
 */
#pragma once

#include <stdint.h>
#include "proto/wire.h"

#define UPLOAD_FD	3 /* the socket's number in kindling-upload */
#define UPLOAD_NAME_MAX 48
#define UPLOAD_TEXT_MAX (60u << 10)

enum upload_ask {
	UPLOAD_TICK, /* once a second */
	UPLOAD_TEST, /* send a small profile to the sink @name */
	UPLOAD_RECORDED, /* about a recording; the message is a struct upload_recorded */
};

struct upload_question {
	uint32_t ask;
	uint32_t reserved;
	uint64_t settled_real_ns; /* the history is complete up to here */
	uint64_t not_stored[WIRE_EVENT_COUNT]; /* samples that did not reach the history since the
						  last message */
	char name[UPLOAD_NAME_MAX];
};

enum upload_say {
	UPLOAD_STATUS, /* @text: [{"name": ...}, ...], as /v1/status has it */
	UPLOAD_TESTED, /* the result of a test of @name */
	UPLOAD_RECORD, /* asks for a recording; the message is a struct upload_record */
};

struct upload_answer {
	uint32_t say;
	uint32_t ok; /* the test succeeded */
	uint32_t len; /* of @text, without the final NUL */
	uint32_t reserved;
	char name[UPLOAD_NAME_MAX];
	char text[UPLOAD_TEXT_MAX]; /* only @len + 1 bytes are sent */
};

/* ---- recordings ------------------------------------------------------------------------------ */

#define UPLOAD_RECORD_MAX_NS (1200 * 1000000000ull)
/* a recording whose request is not repeated for this time ends */
#define UPLOAD_RECORD_KEEP_NS (15 * 1000000000ull)

/* Repeated once a second as long as the recording or its profile is needed. */
struct upload_record {
	uint32_t say; /* UPLOAD_RECORD */
	uint32_t pid;
	uint64_t key; /* requests with the same key are about the same recording */
	uint64_t start_time; /* together with the pid it identifies the JVM */
	uint64_t length_ns;
	uint64_t interval_ns, lock_min_ns, alloc_interval,
		wall_interval_ns; /* 0 = as in the settings */
	uint32_t events; /* bits 1 << enum wire_event */
	uint32_t wish; /* enum upload_wish */
};

enum upload_wish {
	UPLOAD_WISH_BEGIN, /* start the recording, unless it is known */
	UPLOAD_WISH_GO_ON, /* go on with it; UPLOAD_RECORDED_UNKNOWN if it is not known */
	UPLOAD_WISH_FORGET, /* end it and remove its profile; there is no answer */
};

enum upload_recorded_state {
	UPLOAD_RECORDED_RUNS,
	UPLOAD_RECORDED_DONE, /* with a descriptor of the profile, if there are samples */
	UPLOAD_RECORDED_BUSY, /* another user records this JVM: ask again later */
	UPLOAD_RECORDED_FAILED, /* for the reason in @text; kindlingd has dropped the recording */
	UPLOAD_RECORDED_UNKNOWN, /* answers UPLOAD_WISH_GO_ON */
};

struct upload_recorded {
	uint32_t ask; /* UPLOAD_RECORDED */
	uint32_t state; /* enum upload_recorded_state */
	uint64_t key;
	uint64_t begin_real_ns, end_real_ns;
	uint64_t samples; /* in the profile, of all its events */
	char text[256]; /* what was not collected or is missing, and why; "" = nothing */
};
