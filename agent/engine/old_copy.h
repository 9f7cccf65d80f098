/*
 * Where the library comes through a mount, each attach brings a file of its own, and the JVM loads
 * it beside those of the attaches before: it never unloads an agent. Their handlers stay too, as a
 * signal of the host's may still be on its way to them. So that each of them does not take another
 * signal, a new copy takes over that of an old one.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Is @now the handler of another copy of this very library, whose session is over? */
bool old_copy_has_left(const struct sigaction *now);
