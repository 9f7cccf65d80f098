/* A target's seccomp filter of arbitrary instructions, run on one system call: the interpreter
 * ends and stays inside its memory. */
#include <stdlib.h>
#include <string.h>
#include "injector/seccomp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seccomp_data call = { .nr = 222, .args = { 15 } };
	size_t n = size / sizeof(struct sock_filter);
	struct sock_filter *code = malloc(n * sizeof(*code) + 1);

	if (!code)
		return 0;
	memcpy(code, data, n * sizeof(*code));
	(void)seccomp_is_deadly(seccomp_run(code, n, &call));
	free(code);
	return 0;
}
