/* See read_rights.h. No namespaces are needed: the filter forbids socket(2), shmget(2) and the
 * like, so there is neither network nor IPC. */
#include "daemon/symbols/read_rights.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "daemon/ground/confine.h"
#include "daemon/ground/mem.h"
#include "daemon/symbols/table.h"

/* The system calls that libelf, liblzma, the demangler, qsort(3) and debug_file.c need, and
 * those for memory and exit. */
static const int calls[] = {
#ifdef SYS_open
	SYS_open,	  SYS_stat,
#endif
	SYS_read,	  SYS_pread64,	  SYS_write,  SYS_close,	   SYS_lseek,
	SYS_openat,	  SYS_openat2,	  SYS_fstat,  SYS_newfstatat,	   SYS_statx,
	SYS_fcntl,	  SYS_mmap,	  SYS_munmap, SYS_mremap,	   SYS_mprotect,
	SYS_madvise,	  SYS_brk,	  SYS_futex,  SYS_getrandom,	   SYS_sysinfo,
	SYS_rt_sigreturn, SYS_exit_group, SYS_exit,   SYS_restart_syscall, SYS_clock_gettime,
};

static void read_rights_limit(int what, rlim_t n)
{
	struct rlimit r = { n, n };

	(void)setrlimit((__rlimit_resource_t)what, &r);
}

static void set_limits(void)
{
	if (!CONFINE_SANITIZED) {
		read_rights_limit(RLIMIT_AS, (rlim_t)2 << 30); /* files are mapped */
		read_rights_limit(RLIMIT_DATA, (rlim_t)96 << 20);
		read_rights_limit(RLIMIT_NOFILE, 16);
		/* no process may remain that could change the table after the daemon has checked
		 * it */
		read_rights_limit(RLIMIT_NPROC, 0);
		read_rights_limit(RLIMIT_CPU, 6);
	} else { /* ASan reserves terabytes of addresses, its leak check starts a thread */
		read_rights_limit(RLIMIT_CPU, 30);
	}
	read_rights_limit(RLIMIT_CORE, 0);
	read_rights_limit(RLIMIT_FSIZE, TABLE_BYTES_MAX);
}

bool read_give_up_rights(void)
{
	/* names are not urgent: other work comes first */
	(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
	(void)setpriority(PRIO_PROCESS, 0, 19);
	set_limits();
	if (confine_user(CONFINE_SYMBOLS, 0) < 0)
		return false;
	/* an error, not a kill: libc and qsort do without a forbidden call */
	return CONFINE_SANITIZED ||
	       confine_calls(calls, ARRAY_SIZE(calls), SECCOMP_RET_ERRNO | ENOSYS) == 0;
}
