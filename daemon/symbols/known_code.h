/*
 * Names the function at the root of every native thread, glibc's clone3, which has no exported
 * name. It is recognised by its code: it makes the system call clone3, calls a function pointer,
 * and exits. x86-64 only. The function that it calls is start_thread, which profile_symbolize()
 * names.
 */
#pragma once

#include "daemon/symbols/functions.h"

/* Adds clone3 if the code certainly is it and no table names it. 0 or -ENOMEM. */
int known_code(struct functions *f, Elf *elf);
