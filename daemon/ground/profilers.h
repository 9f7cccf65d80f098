/*
 * Recognizes other profilers in a JVM, by the libraries that it has mapped and the agents that its
 * options name. The injector's preflight and the daemon use the same table.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PROFILERS_MAX	    16
#define PROFILERS_TEXT_SIZE 128

/* A set: bit N = the table's row N. */
typedef uint32_t profilers_set;

/* The profilers whose library @line names: a line of /proc/PID/maps, or a path. Pure. */
profilers_set profilers_of_library(const char *line);
/* The profilers that -agentpath:, -agentlib: and -javaagent: name, in the text of /proc/PID/cmdline
 * and environ. Pure. */
profilers_set profilers_of_options(const char *cmdline, size_t cmdline_len, const char *environ,
				   size_t environ_len);
/* "async-profiler, Datadog"; "" for none */
const char *profilers_text(profilers_set set, char buf[PROFILERS_TEXT_SIZE]);
/* The row's name, NULL past the last. */
const char *profilers_name(unsigned row);

/*
 * Add the profilers in the process's maps, or in its cmdline and environ, to @set. Reads are
 * capped; what cannot be read adds nothing. @pid_dfd: directory of /proc/PID.
 */
void profilers_read_maps(int pid_dfd, profilers_set *set);
void profilers_read_options(int pid_dfd, profilers_set *set);
