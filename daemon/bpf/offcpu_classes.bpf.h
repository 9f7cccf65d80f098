/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/*
 * Why a thread leaves the CPU: the class of the system call that it is in, and of the file which that
 * reads or writes.
 */
#pragma once

#define S_IFMT	 0170000
#define S_IFSOCK 0140000
#define S_IFREG	 0100000
#define S_IFBLK	 0060000
#define S_IFDIR	 0040000
#define S_IFIFO	 0010000

/* by number of the system call: OFFCPU_CALL_FD, or a class + 1; 0 = OFFCPU_OTHER */
const volatile __u8 class_of_call[OFFCPU_CALLS];

static __u64 first_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->orig_x0;
#else
	return regs->di;
#endif
}

static __u64 second_argument(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	return regs->regs[1];
#else
	return regs->si;
#endif
}

#ifndef WITHOUT_KFUNCS
/* Makes a kernel pointer readable again whose type the verifier does not know any more; a load that
 * faults reads 0. Since Linux 6.2. */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;
#define KERNEL(type, at) ((type *)bpf_rdonly_cast(at, bpf_core_type_id_kernel(type)))
#endif

/*
 * Where in a thread's kernel stack its registers of user mode are: the same place for all threads
 * of a kernel. 0 = not known yet. The iterator learns it, which runs in one thread of the daemon,
 * so no other one can change @registers_seen meanwhile.
 */
static volatile __u64 registers_seen, registers_at;

#define KERNEL_STACK_MAX (1 << 20) /* bytes; they have 16 to 64 KiB */

static void registers_learn(struct task_struct *task)
{
	__u64 at;

	if (registers_at)
		return;
	registers_seen = (__u64)bpf_task_pt_regs(task);
	/* read again, it is a number, of which another one can be taken off */
	at = registers_seen - (__u64)task->stack;
	/* a thread that ends may lose its stack between the two lines */
	if (at < KERNEL_STACK_MAX)
		registers_at = at;
}

/* What bpf_task_pt_regs() returns, without a call: this runs at each switch. */
static __always_inline struct pt_regs *registers_of(struct task_struct *task)
{
#ifdef WITHOUT_KFUNCS
	return (struct pt_regs *)bpf_task_pt_regs(task);
#else
	__u64 at = registers_at;

	return at ? KERNEL(struct pt_regs, (void *)((__u64)task->stack + at))
		  : (struct pt_regs *)bpf_task_pt_regs(task);
#endif
}

/* The mode of the file that *@at, an element of a table of descriptors, points to. */
static __always_inline __u16 mode_of(void *at)
{
#ifdef WITHOUT_KFUNCS
	struct file *file = 0;

	bpf_probe_read_kernel(&file, sizeof(file), at);
	return BPF_CORE_READ(file, f_inode, i_mode);
#else
	/* read as the first member of a struct fdtable */
	void *table = at - bpf_core_field_offset(struct fdtable, fd);
	struct file *file = (struct file *)KERNEL(struct fdtable, table)->fd;

	return KERNEL(struct file, file)->f_inode->i_mode;
#endif
}

/* The class that follows from the type of the file which @task reads or writes. */
static __always_inline __u8 class_of_descriptor(struct task_struct *task, struct pt_regs *regs)
{
	struct fdtable *fdt = task->files->fdt;
	__u32 fd = (__u32)first_argument(regs);
	void *at = (void *)fdt->fd + fd * sizeof(void *);

	if (fd >= fdt->max_fds)
		return OFFCPU_OTHER;
	switch (mode_of(at) & S_IFMT) {
	case S_IFSOCK:
		return OFFCPU_SOCKET;
	case S_IFIFO:
		return OFFCPU_PIPE;
	case S_IFREG:
	case S_IFBLK:
	case S_IFDIR:
		return OFFCPU_FILE;
	default:
		return OFFCPU_OTHER;
	}
}

/* The class of @task's sleep in the system call @nr, entered with @regs. */
static __always_inline __u8 class_of(struct task_struct *task, struct pt_regs *regs, int nr)
{
	__u64 at = (__u32)nr; /* -1 is beyond the table */
	__u8 known = 0, class = OFFCPU_OTHER;

	barrier_var(at); /* keeps the checked value in one register for the verifier */
	if (at < OFFCPU_CALLS)
		known = class_of_call[at];
	if (nr == -1)
		return OFFCPU_FAULT;
	if (known == OFFCPU_CALL_FD)
		class = class_of_descriptor(task, regs);
	else if (known)
		class = known - 1;
	/* the call may wait for something else, such as a file that is sent to a socket, or a
	 * page of its buffer */
	if (class != OFFCPU_FILE && class != OFFCPU_FSYNC &&
	    BPF_CORE_READ_BITFIELD(task, in_iowait))
		return OFFCPU_DISK;
	return class;
}

/* The system call in which @t's thread leaves the CPU. One that was interrupted in vain, as by
 * SIGCONT, goes on as restart_syscall(2): it still waits for the same. */
static __always_inline int call_of(const struct offcpu_thread *t, struct pt_regs *regs)
{
	int nr = syscall_in(regs);

	return nr == NR_RESTART_SYSCALL && t->syscall_nr >= 0 ? t->syscall_nr : nr;
}

#define PF_FROZEN 0x00010000 /* include/linux/sched.h, until Linux 6.0 */

/* Is a thread that sleeps frozen, as by `docker pause`? A thread that the freezer of cgroup v2
 * holds has the state of any other that sleeps (do_freezer_trap() in kernel/signal.c); one that the
 * freezer of v1 holds, too, until Linux 6.0. A thread that waits for the end of its vfork() counts
 * as frozen for the kernel, but cannot be interrupted. */
static __always_inline int is_frozen(struct task_struct *task, int interruptible)
{
#ifdef WITHOUT_KFUNCS
	if (task->flags & PF_FROZEN)
		return 1;
#endif
	return interruptible && bpf_core_field_exists(task->frozen) &&
	       BPF_CORE_READ_BITFIELD(task, frozen);
}
