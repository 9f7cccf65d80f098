/*
 * Reads and parses text of /proc. A process can shape most of it (its name, its arguments, the
 * names of files that it maps), so reads are capped, and the parsers trust nothing; they are pure,
 * and fuzzed by tests/fuzz/fuzz_proc.c. Formats: proc(5).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the directory of @pid in /proc. Returns a descriptor or -errno. It stays with this process:
 * when that has ended, reads through it fail, even if the pid is used again. */
int proc_open(int proc_dfd, pid_t pid);
/*
 * Reads up to @size - 1 bytes of the file @name in the directory @dfd, also one of a cgroup; the
 * text is NUL-terminated. @name itself must not be a symbolic link. Returns the length, or -errno
 * (-ESRCH: there is no such file, so in /proc/PID the process has ended).
 */
ssize_t proc_read(int dfd, const char *name, char *buf, size_t size);

struct proc_stat {
	char comm[16];
	char state;
	uint64_t start_time; /* clock ticks since boot */
	uint64_t cpu_ticks; /* user and system time of all its threads */
};
/* Parses /proc/PID/stat. false = malformed. */
bool proc_parse_stat(const char *text, struct proc_stat *ret);
uint64_t proc_start_time(const char *stat); /* only start_time, from stat's text; 0 = malformed */
char proc_state(const char *stat); /* only state; '?' = malformed */
/* Is @pid, in our /proc, still the process that started at @start_time (clock ticks since boot)? */
bool proc_lives(pid_t pid, uint64_t start_time);

struct proc_status {
	uid_t uid; /* effective, as the JVM compares it at attach */
	gid_t gid;
	pid_t ns_pid; /* in the innermost pid namespace; 0 if the kernel does not show it */
	uint64_t caught; /* signals with a handler, bit N - 1 for signal N */
};
/* Parses /proc/PID/status. false = Uid, Gid or SigCgt is missing. */
bool proc_parse_status(const char *text, struct proc_status *ret);
/*
 * The text after @key ("Uid:", "Max processes") at the beginning of a line of status, limits or
 * memory.stat, without leading blanks, cut to @size with its NUL. false = no such line.
 */
bool proc_field(const char *text, const char *key, char *ret, size_t size);
/* The signals in the line @key ("SigCgt:") of status, bit N - 1 for signal N; 0 = no such line. */
uint64_t proc_signal_mask(const char *status, const char *key);

/* The id outside of the user namespace for id 0 inside, from a uid_map or gid_map. 0, or -ENOENT if
 * id 0 is not mapped. */
int proc_map_root(const char *map, uint32_t *ret);

#define PROC_BOOT_ID_SIZE 40
/* The id of this boot, 36 characters and a NUL; "unknown" if it cannot be read. */
void proc_boot_id(char ret[PROC_BOOT_ID_SIZE]);
