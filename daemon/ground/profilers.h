/*
 * Profilers of others in a JVM: which there are, by the libraries it has mapped and the agents its
 * options name. One table; the injector's preflight and the daemon both look by it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PROFILERS_MAX	    16
#define PROFILERS_TEXT_SIZE 128

/* A set: bit N = the table's row N. */
typedef uint32_t profilers_set;

/* @line: of /proc/PID/maps, or a path; NUL-terminated. Pure. */
profilers_set profilers_of_library(const char *line);
/* -agentpath:, -agentlib: and -javaagent: in what /proc/PID/cmdline and environ hold. Pure. */
profilers_set profilers_of_options(const char *cmdline, size_t cmdline_len, const char *environ,
				   size_t environ_len);
/* "async-profiler, Datadog"; "" for none */
const char *profilers_text(profilers_set set, char buf[PROFILERS_TEXT_SIZE]);
/* The row's name, NULL past the last. */
const char *profilers_name(unsigned row);

/*
 * Add those in maps, and with @options those in cmdline and environ, to @set; capped, and what
 * cannot be read adds nothing. @pid_dfd: directory of /proc/PID.
 */
void profilers_read_maps(int pid_dfd, profilers_set *set);
void profilers_read_options(int pid_dfd, profilers_set *set);
