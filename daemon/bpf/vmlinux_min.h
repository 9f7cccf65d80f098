/*
 * The few kernel types that our programs read, written by hand. CO-RE finds members by name in the
 * running kernel, so only names and types matter, and the build does not need a kernel's BTF. The
 * integer types are those that bpf_helpers.h uses.
 */
#pragma once

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
};

/* of bpf_ringbuf_submit() and bpf_ringbuf_output() */
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

enum pid_type {
	PIDTYPE_PID,
};

/* must have the kernel's name and size: the kernel finds it in map values by these, without
 * relocation */
struct bpf_task_work {
	__u64 __opaque;
} __attribute__((aligned(8)));

/* has a member because a type without definition does not match the kernel's own */
struct bpf_map {
	__u32 id;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not begun to exit */
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

/* the registers of user mode, saved when the thread entered the kernel */
struct pt_regs {
#if defined(__TARGET_ARCH_arm64)
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
#else
	unsigned long r10;
	unsigned long ax;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
#endif
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* by pid namespace, the first one first */
};

struct inode {
	__u16 i_mode;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct rseq;

struct rq {
	__u64 clock;
};

struct cfs_rq {
	struct rq *rq;
	/* with CONFIG_CFS_BANDWIDTH */
	int throttle_count; /* groups from this one up whose quota is used up */
	/* ns for which it was not 0, all in all, without the present time */
	__u64 throttled_clock_self_time; /* Linux 6.6: only with a thread in it */
	__u64 throttled_clock_pelt_time; /* Linux 5.19 */
	__u64 throttled_clock_task_time; /* before */
};

struct sched_info {
	unsigned long long run_delay; /* ns in run queues, without the present time in one */
	unsigned long long last_queued; /* by the run queue's clock; 0 = in no run queue */
};

struct sched_entity {
	struct cfs_rq *cfs_rq; /* with CONFIG_FAIR_GROUP_SCHED */
	__u64 sum_exec_runtime; /* ns on the CPU */
	__u64 prev_sum_exec_runtime; /* ns on the CPU when the thread last got one */
};

struct task_struct {
	unsigned int __state; /* TASK_... */
	void *stack;
	struct sched_entity se;
	struct sched_info sched_info; /* with CONFIG_SCHED_INFO */
	unsigned int flags; /* PF_... */
	int prio; /* below 100 for a real-time thread */
	bool throttled; /* Linux 6.18: the thread waits for its cgroup's CPU quota */
	unsigned in_iowait : 1;
	unsigned frozen : 1;
	int pid; /* of the thread, in the first pid namespace */
	int tgid;
	__u64 start_time; /* CLOCK_MONOTONIC */
	struct files_struct *files;
	struct rseq *rseq;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
	struct sigpending pending; /* the thread's own */
	int exit_code;
	char comm[16]; /* the thread's name */
};

#pragma clang attribute pop
