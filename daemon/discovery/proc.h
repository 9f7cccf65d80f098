/*
 * Text of /proc/PID, read with caps and taken apart. A process can shape most of it (its name, its
 * arguments, the names of files it maps): nothing is trusted, the parsers are pure and fuzzed
 * (tests/fuzz/fuzz_proc.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A directory fd of /proc/@pid: it stays with this process and fails once that is gone. */
int proc_open(int proc_dfd, pid_t pid);
/* Up to @size - 1 bytes of a file, NUL-terminated. Returns the length or -errno (-ESRCH: gone). */
ssize_t proc_read(int pid_dfd, const char *name, char *buf, size_t size);

struct proc_stat {
	char comm[16];
	char state;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t cpu_ticks; /* user and system time of all its threads */
};
bool proc_parse_stat(const char *text, struct proc_stat *ret);
/* Is @pid of this /proc still the process that started at @start_time (clock ticks since boot)? */
bool proc_lives(pid_t pid, uint64_t start_time);

struct proc_status {
	uid_t uid; /* effective, as the JVM compares it at attach */
	gid_t gid;
	pid_t ns_pid; /* in the innermost pid namespace; 0 if the kernel does not say */
	uint64_t caught; /* signals with a handler, bit N - 1 for signal N */
};
bool proc_parse_status(const char *text, struct proc_status *ret);

/* A JVM's library in maps. */
struct proc_maps {
	char path[4096]; /* of the library, "" if there is none (yet) */
	bool deleted;
	bool j9; /* it is OpenJ9's: wins over libjvm.so, which it also has as a stub */
};
void proc_maps_line(void *maps, char *line); /* one more of its lines: a maps_fn */
/* All of /proc/PID/maps, capped. 0 or -errno (-ESRCH: gone). */
int proc_read_maps(int pid_dfd, struct proc_maps *ret);
