/*
 * The function at the root of every native thread has no exported name: glibc's clone3. Its code
 * says who it is: it makes the system call of that name, then calls what it was given, then exits.
 * x86-64 only. Who it calls is start_thread, which profile_symbolize() names.
 */
#pragma once

#include "daemon/symbols/functions.h"

/* Adds what is sure and has no name yet. 0 or -ENOMEM. */
int known_code(struct functions *f, Elf *elf);
