/* The answer to `load` by a JVM, or by a process that pretends to be one. */
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/proc.h"
#include "injector/inject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fault f = { 0 };
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (reply_check_load(text, &f) < 0 && (f.code == 0 || memchr(f.what, 0, sizeof(f.what)) == NULL))
		abort();
	(void)options_flag((const char *)data, size, "EnableDynamicAgentLoading");
	(void)proc_start_time(text);
	(void)proc_state(text);
	free(text);
	return 0;
}
