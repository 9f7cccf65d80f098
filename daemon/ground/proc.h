/*
 * Text of /proc, read with caps and taken apart. A process can shape most of it (its name, its
 * arguments, the names of files it maps): nothing is trusted, the parsers are pure and fuzzed
 * (tests/fuzz/fuzz_proc.c). Formats: proc(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A directory fd of /proc/@pid: it stays with this process and fails once that is gone. */
int proc_open(int proc_dfd, pid_t pid);
/*
 * Up to @size - 1 bytes of the file @name in the directory @dfd, NUL-terminated; cgroup files are
 * read by it too. No symbolic link is followed in the last part of @name. Returns the length, or
 * -errno (-ESRCH: there is no such file, so in /proc/PID the process is gone).
 */
ssize_t proc_read(int dfd, const char *name, char *buf, size_t size);

struct proc_stat {
	char comm[16];
	char state;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t cpu_ticks; /* user and system time of all its threads */
};
/* /proc/PID/stat. false = malformed. */
bool proc_parse_stat(const char *text, struct proc_stat *ret);
uint64_t proc_start_time(const char *stat); /* the start_time only; 0 = malformed */
char proc_state(const char *stat); /* '?' = malformed */
/* Is @pid of this /proc still the process that started at @start_time (clock ticks since boot)? */
bool proc_lives(pid_t pid, uint64_t start_time);

struct proc_status {
	uid_t uid; /* effective, as the JVM compares it at attach */
	gid_t gid;
	pid_t ns_pid; /* in the innermost pid namespace; 0 if the kernel does not say */
	uint64_t caught; /* signals with a handler, bit N - 1 for signal N */
};
/* /proc/PID/status. false = one of the lines is missing that every kernel has. */
bool proc_parse_status(const char *text, struct proc_status *ret);
/*
 * The text after @key ("Uid:", "Max processes") at the beginning of a line of status, limits or
 * memory.stat, without leading blanks, cut to @size with its NUL. false = no such line.
 */
bool proc_field(const char *text, const char *key, char *ret, size_t size);
/* Signals as bits, bit N - 1 for signal N: "SigCgt:" of status; 0 = no such line. */
uint64_t proc_signal_mask(const char *status, const char *key);

/* The host's number of id 0 in a uid_map or gid_map; -ENOENT if it has none. */
int proc_map_root(const char *map, uint32_t *ret);

#define PROC_BOOT_ID_SIZE 40
/* Which run of the kernel this is, 36 characters and a NUL; "unknown" where it cannot be read. */
void proc_boot_id(char ret[PROC_BOOT_ID_SIZE]);
