/* The rights that kindling-symbols gives up before it reads an untrusted file. */
#pragma once

#include <stdbool.h>

/* Limits time and memory, takes a uid of its own, drops all capabilities, and leaves only the
 * system calls that reading files needs. false = it still has rights that it must not have. */
bool read_give_up_rights(void);
