/* The agent's own thread; what it does is session.c's. */
#pragma once

/*
 * Takes in the FIFOs of a new session and starts the agent's thread if there is none. Returns at
 * once. @options: "events=PATH,control=PATH". Any thread that may run JNI.
 */
void agent_thread_begin(const char *options);
