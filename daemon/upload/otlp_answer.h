/* What a server says to an OTLP request: ExportProfilesServiceResponse. Foreign bytes; fuzzed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct otlp_answer {
	uint64_t rejected; /* profiles */
	char message[300]; /* NUL-terminated; "" = none */
};
/* 0, or -EBADMSG: it is no such message. */
int otlp_answer_read(const uint8_t *p, size_t len, struct otlp_answer *ret);
