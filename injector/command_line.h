/* The command line of kindling-inject; the manual page and the completions are made from the same
 * table. */
#pragma once

#include "daemon/ground/usage.h"

struct command_line {
	const char *deadline, *result_fd; /* as typed; NULL = not given */
};

extern const struct usage usage_inject;
