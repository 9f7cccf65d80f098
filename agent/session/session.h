/* A session with a daemon over two FIFOs. Only the agent's thread, life.c. */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

struct session_paths {
	char events[PATH_BYTES], control[PATH_BYTES];
};

/* New FIFOs: the end of a session that goes on over the old ones. false = they cannot be opened. */
bool session_open(const struct session_paths *paths);
/* Wait for something and do it. false = the agent was told to detach. */
bool session_step(void);
/* Everything is put back, as far as it can be, and given back. */
void session_close(void);
