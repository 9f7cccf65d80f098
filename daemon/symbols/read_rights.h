/* What kindling-symbols gives up before it looks at a byte of a stranger's file. */
#pragma once

#include <stdbool.h>

/* Limits of time and memory, a user of its own, no capability, and no system call but those that
 * reading files takes. false = it still has what it should not. */
bool read_give_up_rights(void);
