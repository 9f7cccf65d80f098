/*
 * The function at the root of every native thread has no exported name: glibc's clone3. It is
 * recognised by its code: it makes the system call of that name, then calls a function pointer,
 * then exits. x86-64 only. The function that it calls is start_thread, which profile_symbolize()
 * names.
 */
#pragma once

#include "daemon/symbols/functions.h"

/* Adds it if the match is certain and it has no name yet. 0 or -ENOMEM. */
int known_code(struct functions *f, Elf *elf);
