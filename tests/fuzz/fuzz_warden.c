/* A request to the warden from a data process that an attacker controls: the warden accepts only
 * the configured programs with known arguments. */
#include <stdlib.h>
#include <string.h>
#include "daemon/core/warden_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct warden_settings settings = {
	.programs = { "/given/inject", "/given/look", "/given/symbols", "/given/upload",
		      "/given/names" },
	.library = "/given/agent.so",
};

static void check_words(enum warden_program program, char *const argv[])
{
	unsigned n = 0;

	while (argv[n])
		n++;
	if (strcmp(argv[0], settings.programs[program]) != 0)
		abort();
	if ((program == WARDEN_LOOK || program == WARDEN_NAMES) && n != 1)
		abort();
	if (program == WARDEN_SYMBOLS && (n > 2 || (n == 2 && argv[1][0] == '-')))
		abort();
	for (unsigned i = 6; program == WARDEN_INJECTOR && i < n; i++) {
		const char *equals = strchr(argv[i], '=');
		bool is_library = i == 6 && strcmp(argv[5], "attach") == 0;

		if (is_library ? strcmp(argv[i], settings.library) != 0
			       : !equals || strspn(equals + 1, "0123456789") != strlen(equals + 1))
			abort();
	}
}

/* The first byte selects the program, the second is the number of arguments; the arguments
 * follow. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct warden_question q;
	char *argv[WARDEN_ARGS_MAX + 1];
	enum warden_program program;
	size_t len;

	if (size < 2 || size - 2 > sizeof(q.args))
		return 0;
	len = size - 2;
	program = data[0] % WARDEN_PROGRAM_COUNT;
	/* after the last one the buffer has what the previous request left there */
	memset(&q, 'x', sizeof(q));
	q.n_args = data[1];
	memcpy(q.args, data + 2, len);
	if (!warden_take_args(&q, len, argv))
		return 0;
	for (unsigned i = 0; i < q.n_args; i++)
		if (argv[i] < q.args || argv[i] + strlen(argv[i]) >= q.args + len)
			abort();
	/* the owner of a file is not looked up on this machine: a fuzzed byte decides whether
	 * another program or library is root's */
	if (argv[0][0] == '/' && strncmp(argv[0], "/given/", 7) != 0)
		return 0;
	if (q.n_args > 6 && argv[6][0] == '/' && strncmp(argv[6], "/given/", 7) != 0)
		return 0;
	if (warden_check(&settings, program, argv) == 0)
		check_words(program, argv);
	return 0;
}
