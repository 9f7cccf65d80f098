/* See names_rights.h. */
#include "daemon/names/names_rights.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "daemon/ground/confine.h"
#include "daemon/ground/mem.h"
#include "daemon/names/names_message.h"

/* None of these opens or duplicates a descriptor; only sendto(2) writes. */
static const int calls[] = {
#ifdef SYS_poll
	SYS_poll,
#endif
	SYS_read,	  SYS_ppoll,	  SYS_recvmsg,	 SYS_sendto,	    SYS_close,
	SYS_mmap,	  SYS_munmap,	  SYS_mremap,	 SYS_mprotect,	    SYS_madvise,
	SYS_brk,	  SYS_futex,	  SYS_getrandom, SYS_clock_gettime, SYS_restart_syscall,
	SYS_rt_sigreturn, SYS_exit_group, SYS_exit,
};

/*
 * Allows sendto(2) only to NAMES_FD, because a process that can write to the runtime's connection
 * can start any container. The filter reads the lower half of the argument; both architectures are
 * little-endian. confine_calls() adds the filter that checks the architecture.
 */
static int names_send_only_answers(void)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NAMES_FD, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), (struct sock_filter *)(uintptr_t)code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static void names_limit(int what, rlim_t n)
{
	struct rlimit r = { n, n };

	(void)setrlimit((__rlimit_resource_t)what, &r);
}

int names_give_up_rights(void)
{
	int r;

	if (!CONFINE_SANITIZED) {
		names_limit(RLIMIT_DATA, (rlim_t)96 << 20);
		names_limit(RLIMIT_NPROC, 0);
		names_limit(RLIMIT_NOFILE, 16);
	}
	names_limit(RLIMIT_CORE, 0);
	names_limit(RLIMIT_FSIZE, 0);
	r = confine_user(CONFINE_NAMES, 0);
	if (CONFINE_SANITIZED || r < 0)
		return r;
	r = names_send_only_answers();
	return r < 0 ? r : confine_calls(calls, ARRAY_SIZE(calls), SECCOMP_RET_ERRNO | ENOSYS);
}
