/*
 * Earlier copies of this library in the same JVM. Where the library comes through a mount, each
 * attach brings a new file, which the JVM loads beside those of earlier attaches; it never unloads
 * an agent. The handler of an ended copy stays installed, because a delayed signal of the host
 * engine may still come. A new copy takes over that signal, so that copies do not use up one signal
 * after the other.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Is @now the handler of another copy of this build whose session has ended? */
bool old_copy_has_ended(const struct sigaction *now);
