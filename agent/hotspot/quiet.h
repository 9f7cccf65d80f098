/*
 * JEP 451 (JDK 21 and later): the JVM prints a warning of three lines to the application's stderr
 * when an agent is loaded at run time, unless its flag EnableDynamicAgentLoading was set on the
 * command line. The library's constructor runs inside the JVM's dlopen(), before that check, and
 * calls quiet_begin(), which marks the flag as set on the command line; quiet_end() removes the
 * mark in Agent_OnAttach. The flag's value does not change. docs/security.md explains why, and how
 * to keep the warning (a library named *-loud.so).
 */
#pragma once

void quiet_begin(const char *library);
void quiet_end(void);
