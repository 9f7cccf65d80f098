/* Parses a server's answer to an OTLP request: ExportProfilesServiceResponse. Untrusted bytes;
 * fuzzed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct otlp_answer {
	uint64_t rejected; /* number of rejected profiles */
	char message[300]; /* NUL-terminated; "" = none */
};
/* 0, or -EBADMSG: not such a message. */
int otlp_answer_read(const uint8_t *p, size_t len, struct otlp_answer *ret);
