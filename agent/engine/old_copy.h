/*
 * Other copies of this library in the same JVM, which never unloads an agent: one for each version
 * of kindling that has attached, and one for each attach where the library comes through a mount.
 * The handler of an ended copy stays installed, because a delayed signal of the host engine may
 * still come. A new copy takes over that signal, so that copies do not use up one signal after the
 * other.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Is @now the handler of another copy, of whatever version, whose session has ended? */
bool old_copy_has_ended(const struct sigaction *now);
