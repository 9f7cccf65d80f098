/* The messages from kindling-names to the data process: one for each question of the warden. */
#pragma once

#include <stdint.h>
#include "daemon/core/warden.h"
#include "daemon/discovery/jvm.h"

#define NAMES_FD	 3 /* kindling-names sends its messages to this descriptor */
#define NAMES_ANSWER_MS	 3000 /* deadline of the runtime's answer */
#define NAMES_MESSAGE_MS 8000 /* deadline of kindling-names' message; longer, for a busy host */

struct names_answer {
	uint64_t number; /* of the question */
	/* 0; -ENOENT: the runtime knows no such container or pod; -ETIMEDOUT: no answer;
	 * -ECONNRESET: it closed the connection; -EREMOTEIO: it answered without a message, so it
	 * does not know the method; -EPROTO: the answer is malformed; -EMSGSIZE: it is larger than
	 * WARDEN_NAMES_ANSWER_MAX */
	int32_t result;
	char sandbox[WARDEN_NAMES_ID_SIZE]; /* the id of the container's pod; "" = none */
	/* only container, pod, image, image_digest, notes and allowed, if the answer has them */
	struct jvm jvm;
};
