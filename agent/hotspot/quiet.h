/*
 * JEP 451 (JDK 21+): the JVM prints three lines to the application's stderr when an agent is loaded
 * at run time, unless its flag EnableDynamicAgentLoading was set on the command line. The library's
 * constructor, which runs inside the JVM's dlopen() and before the check, marks the flag so;
 * quiet_end() takes the mark away again in Agent_OnAttach. No value of a flag changes.
 * docs/security.md says why and how to switch it off (a library named *-loud.so).
 */
#pragma once

void quiet_begin(const char *library);
void quiet_end(void);
