/* A session with a daemon over two FIFOs. Only for the agent's thread, agent_thread.c. */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

struct session_paths {
	char events[PATH_BYTES], control[PATH_BYTES];
};

/* Opens new FIFOs and ends a session over the previous ones. false = they cannot be opened. */
bool session_open(const struct session_paths *paths);
/* Waits until something is due and does it. false = DETACH has come. */
bool session_step(void);
/* Restores what the agent changed in the JVM and frees its memory, as far as that is safe. */
void session_close(void);
