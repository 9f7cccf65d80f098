/* From kindling-names to kindlingd-data: one message for each question that the warden asked. */
#pragma once

#include <stdint.h>
#include "daemon/core/warden.h"
#include "daemon/discovery/jvm.h"

#define NAMES_FD	 3 /* of kindling-names: where answers go */
#define NAMES_ANSWER_MS	 3000 /* that the runtime has for one answer */
#define NAMES_MESSAGE_MS 8000 /* that kindling-names has for its message, on a busy host */

struct names_answer {
	uint64_t number; /* of the question */
	/* 0; -ENOENT: the runtime knows no such container or pod; -ETIMEDOUT; -ECONNRESET: it hung
	 * up; -EREMOTEIO: it answered without a message, so it does not know the question; -EPROTO:
	 * not an answer; -EMSGSIZE: more than WARDEN_NAMES_ANSWER_MAX */
	int32_t result;
	char sandbox[WARDEN_NAMES_ID_SIZE]; /* of a container: its pod's; "" = none */
	/* container, pod, image, image_digest, notes and allowed, as far as they are in the answer
	 */
	struct jvm jvm;
};
