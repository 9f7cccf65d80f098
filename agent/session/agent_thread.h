/* The agent's own thread; session.c defines what it does. */
#pragma once

/*
 * Hands the FIFOs of a new session to the agent's thread, which it starts if there is none. Returns
 * at once. @options: "events=PATH,control=PATH". Any thread that may run JNI.
 */
void agent_thread_begin(const char *options);
