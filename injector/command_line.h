/* What kindling-inject's command line takes; the manual page and the completions read the same
 * table. */
#pragma once

#include "daemon/ground/usage.h"

struct command_line {
	const char *deadline, *result_fd; /* as typed; NULL = not given */
};

extern const struct usage usage_inject;
