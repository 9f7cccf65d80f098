/* Answers of servers: a Retry-After header and the response to an OTLP request. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/upload/http.h"
#include "daemon/upload/otlp_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct otlp_answer a;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	(void)http_retry_after(text, 1700000000 * NS_PER_S);
	free(text);
	if (otlp_answer_read(data, size, &a) == 0)
		assert(memchr(a.message, '\0', sizeof(a.message)));
	return 0;
}
