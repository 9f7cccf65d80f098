/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 (the kernel requires a GPL-compatible one) */
/* Reports processes that start a program and processes that end. */
#include "vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "exec.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EXEC_RING_BYTES);
} ring SEC(".maps");

__u64 lost; /* records for which the ring had no room */
__u64 woken_ns; /* when a record woke the daemon */

/* A JVM is to be found at once. */
static bool is_java(const struct exec_record *r)
{
	return r->kind == EXEC_EXEC && r->comm[0] == 'j' && r->comm[1] == 'a' &&
	       r->comm[2] == 'v' && r->comm[3] == 'a';
}

/* The daemon reads the ring once more EXEC_QUIET_NS after it was woken. */
static __u64 wake_flag(const struct exec_record *r)
{
	if (is_java(r))
		return BPF_RB_FORCE_WAKEUP;
	if (r->mono_ns - woken_ns < EXEC_QUIET_NS)
		return BPF_RB_NO_WAKEUP;
	woken_ns = r->mono_ns;
	return BPF_RB_FORCE_WAKEUP;
}

static void report_process(__u32 kind, __s32 status)
{
	struct exec_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	r->mono_ns = bpf_ktime_get_ns();
	r->pid = bpf_get_current_pid_tgid() >> 32;
	r->kind = kind;
	r->status = status;
	r->unused = 0;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, wake_flag(r));
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec)
{
	report_process(EXEC_EXEC, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	/* the event comes for every thread; it comes after the thread is no longer counted as
	 * live */
	if (task->signal->live.counter == 0)
		report_process(EXEC_EXIT, task->exit_code);
	return 0;
}
