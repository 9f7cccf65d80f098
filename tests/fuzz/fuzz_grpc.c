/* The trailers of a gRPC answer: the parsed texts stay inside their buffers, and a retry delay
 * is at most a day. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/upload/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), buf[40];

	if (size)
		memcpy(text, data, size);
	memset(buf, 'x', sizeof(buf));
	grpc_decode_text(text, buf, sizeof(buf));
	assert(memchr(buf, '\0', sizeof(buf)));
	assert(grpc_retry_after(text) <= (86400 + 1) * NS_PER_S);
	free(text);
	return 0;
}
