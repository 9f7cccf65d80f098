/* The records that exec.bpf.c puts into its ring and exec_events.c reads. The including file
 * defines the integer types. */
#pragma once

#define EXEC_RING_BYTES (256 * 1024)
/* For so long after a record that woke the daemon, further ones do not: where a build or a shell
 * starts hundreds of programs a second, waking it for each would slow them down. */
#define EXEC_QUIET_NS 10000000ull

enum exec_kind {
	EXEC_EXEC,
	EXEC_EXIT, /* of the last thread of a process */
};

struct exec_record {
	__u64 mono_ns;
	__u32 pid; /* thread group, as counted in the first pid namespace */
	__u32 kind;
	__s32 status; /* EXEC_EXIT: wait status as in wait(2) */
	__u32 unused;
	char comm[16];
};
