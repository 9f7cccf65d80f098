/* What kindlingd's command line takes; the manual page and the completions read the same table. */
#pragma once

#include "daemon/ground/usage.h"

/* What the command line says about settings; it wins over the file. NULL = not given. */
struct options {
	const char *file, *socket, *state_dir, *log_level;
};

extern const struct usage usage_kindlingd;
