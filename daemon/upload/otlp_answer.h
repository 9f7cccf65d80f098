/* Parses the answer to an OTLP request, an ExportProfilesServiceResponse: untrusted bytes.
 * Fuzzed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct otlp_answer {
	uint64_t rejected; /* profiles that the server rejected */
	char message[300]; /* NUL-terminated; "" = none */
};
/* 0, or -EBADMSG: not such a message. */
int otlp_answer_read(const uint8_t *p, size_t len, struct otlp_answer *ret);
