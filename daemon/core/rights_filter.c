/*
 * The seccomp filters of the data process and of kindling-upload, which refuse system calls that
 * these never need. They are not lists of allowed calls, because the C library and others make
 * different calls on different hosts, and a profiler that fails for such a call helps nobody.
 * Without capabilities the kernel refuses most of these calls anyway; the filters close what any
 * user may do: start programs, look into other processes, use namespaces, networks, BPF and
 * io_uring.
 */
#include "daemon/core/rights.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/ground/confine.h"
#include "daemon/ground/mem.h"

#ifdef __x86_64__
#define ARCH	AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#else
#define ARCH	AUDIT_ARCH_AARCH64
#define X32_BIT 0xffffffffu
#endif

/* the lower half of an argument; both machines are little-endian */
#define ARG(n)		   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define NR		   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define REFUSE		   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW		   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define IF(what, value, n) BPF_JUMP(BPF_JMP | (what) | BPF_K, (value), 0, (n))
#define NEVER(name)	   IF(BPF_JEQ, SYS_##name, 1), REFUSE

/* A filter is put together from these pieces; each jump stays within its piece. */
static const struct sock_filter begin[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	NR,
	IF(BPF_JGE, X32_BIT, 1),
	REFUSE,
};

static const struct sock_filter programs_piece[] = {
	NEVER(execve),
	NEVER(execveat),
};

static const struct sock_filter both[] = {
	/* other processes */
	NEVER(ptrace),
	NEVER(process_vm_readv),
	NEVER(process_vm_writev),
	NEVER(pidfd_getfd),
	NEVER(kcmp),
	/* file systems and namespaces */
	NEVER(mount),
	NEVER(umount2),
	NEVER(pivot_root),
	NEVER(chroot),
	NEVER(setns),
	NEVER(unshare),
	NEVER(open_tree),
	NEVER(move_mount),
	NEVER(fsopen),
	NEVER(fsconfig),
	NEVER(fsmount),
	NEVER(fspick),
	NEVER(open_by_handle_at),
	NEVER(fanotify_init),
	/* the kernel */
	NEVER(init_module),
	NEVER(finit_module),
	NEVER(delete_module),
	NEVER(kexec_load),
	NEVER(reboot),
	NEVER(perf_event_open),
	NEVER(userfaultfd),
	NEVER(keyctl),
	NEVER(add_key),
	NEVER(request_key),
	NEVER(io_uring_setup),
	NEVER(io_uring_enter),
	NEVER(io_uring_register),
};

static const struct sock_filter data_piece[] = {
	/* bpf(2): commands on maps, and attaching and running the programs that were loaded at the
	   start, which run only while there is a target. No other program can be loaded. */
	IF(BPF_JEQ, SYS_bpf, 6),
	ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_RAW_TRACEPOINT_OPEN, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_ITER_CREATE, 2, 0),
	IF(BPF_JGT, BPF_MAP_GET_NEXT_KEY, 1),
	REFUSE,
	ALLOW,
	/* only Unix sockets */
	IF(BPF_JEQ, SYS_socket, 4),
	ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0),
	REFUSE,
	ALLOW,
};

static const struct sock_filter upload_piece[] = {
	NEVER(bpf),
	/* only Unix and Internet sockets, and netlink, by which the resolver finds the host's
	   addresses */
	IF(BPF_JEQ, SYS_socket, 7),
	ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 4, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 3, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0),
	REFUSE,
	ALLOW,
};

static const struct sock_filter end[] = {
	/* new threads and processes are allowed, user namespaces are not. A filter cannot read the
	   flags of clone3(2), which are in memory; after ENOSYS the C library uses clone(2) */
	IF(BPF_JEQ, SYS_clone3, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	IF(BPF_JEQ, SYS_clone, 4),
	ARG(0),
	IF(BPF_JSET, CLONE_NEWUSER, 1),
	REFUSE,
	ALLOW,
	ALLOW,
};

#define PIECES_MAX 160

struct pieces {
	struct sock_filter code[PIECES_MAX];
	unsigned short len;
};

static void rights_filter_add_piece(struct pieces *to, const struct sock_filter *piece, size_t n)
{
	memcpy(to->code + to->len, piece, n * sizeof(*piece));
	to->len += (unsigned short)n;
}
#define ADD(to, piece) rights_filter_add_piece(to, piece, ARRAY_SIZE(piece))
_Static_assert(ARRAY_SIZE(begin) + ARRAY_SIZE(programs_piece) + ARRAY_SIZE(both) +
			       ARRAY_SIZE(data_piece) + ARRAY_SIZE(upload_piece) +
			       ARRAY_SIZE(end) <=
		       PIECES_MAX,
	       "there is room for all of them");

static int rights_filter_set(struct pieces *p)
{
	const struct sock_fprog program = { p->len, p->code };

	if (CONFINE_SANITIZED) /* LeakSanitizer attaches to its own process with ptrace(2) */
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* TSYNC: the filter must also hold for the worker thread, which runs already */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		return -errno;
	return 0;
}

int rights_filter(void)
{
	struct pieces p = { .len = 0 };

	ADD(&p, begin);
	ADD(&p, programs_piece);
	ADD(&p, both);
	ADD(&p, data_piece);
	ADD(&p, end);
	return rights_filter_set(&p);
}

int rights_filter_upload(bool programs)
{
	struct pieces p = { .len = 0 };

	ADD(&p, begin);
	if (!programs)
		ADD(&p, programs_piece);
	ADD(&p, both);
	ADD(&p, upload_piece);
	ADD(&p, end);
	return rights_filter_set(&p);
}
