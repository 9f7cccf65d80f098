/* See look_rights.h. */
#include "daemon/discovery/look_rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include "daemon/ground/confine.h"
#include "daemon/ground/mem.h"

/*
 * SYS_PTRACE: to read maps, environ, root, cwd and fd of a process. DAC_READ_SEARCH: to read files
 * of any user. CHECKPOINT_RESTORE (Linux 5.9): map_files, through which deleted libraries can be
 * opened.
 */
#define KEPT \
	(CONFINE_CAP(SYS_PTRACE) | CONFINE_CAP(DAC_READ_SEARCH) | CONFINE_CAP(CHECKPOINT_RESTORE))

/* The allowed system calls: read files and directories, receive questions, send answers, memory,
 * time, and exit. */
static const int calls[] = {
#ifdef SYS_open
	SYS_open,	    SYS_stat,
	SYS_lstat,	    SYS_access,
	SYS_readlink,	    SYS_poll,
#endif
	SYS_read,	    SYS_readv,
	SYS_pread64,	    SYS_write,
	SYS_writev,	    SYS_close,
	SYS_lseek,	    SYS_openat,
	SYS_openat2,	    SYS_fstat,
	SYS_newfstatat,	    SYS_statx,
	SYS_fstatfs,	    SYS_statfs,
	SYS_readlinkat,	    SYS_getdents64,
	SYS_faccessat,	    SYS_faccessat2,
	SYS_fcntl,	    SYS_dup,
	SYS_ioctl,	    SYS_ppoll,
	SYS_recvfrom,	    SYS_recvmsg,
	SYS_sendto,	    SYS_sendmsg,
	SYS_mmap,	    SYS_munmap,
	SYS_mremap,	    SYS_mprotect,
	SYS_madvise,	    SYS_brk,
	SYS_futex,	    SYS_getrandom,
	SYS_sysinfo,	    SYS_getpid,
	SYS_gettid,	    SYS_getuid,
	SYS_geteuid,	    SYS_uname,
	SYS_clock_gettime,  SYS_gettimeofday,
	SYS_rt_sigprocmask, SYS_rt_sigaction,
	SYS_rt_sigreturn,   SYS_restart_syscall,
	SYS_exit_group,	    SYS_exit,
};

int look_give_up_rights(void)
{
	int r = confine_user(CONFINE_LOOK, KEPT);

	/* ENOSYS, so that a C library that tries a newer call falls back to an allowed one */
	if (r == 0 && !CONFINE_SANITIZED)
		r = confine_calls(calls, ARRAY_SIZE(calls), SECCOMP_RET_ERRNO | ENOSYS);
	return r;
}
