/* The rights that kindling-symbols gives up before it reads a byte of an untrusted file. */
#pragma once

#include <stdbool.h>

/* Sets limits of time and memory, a uid of its own, no capabilities, and only the system calls that
 * reading files needs. false = it still has rights that it must not have. */
bool read_give_up_rights(void);
