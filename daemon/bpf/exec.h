/* The records that exec.bpf.c puts into its ring and exec_events.c reads. The including file
 * defines the integer types. */
#pragma once

#define EXEC_RING_BYTES (256 * 1024)
/* After a record that wakes the daemon others do not, for so long: where a build or a shell starts
 * hundreds of programs a second, each waking would cost a CPU more than the record. */
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
