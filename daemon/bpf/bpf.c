/* See bpf_priv.h. */
#include "daemon/bpf/bpf_priv.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/log.h"

#define FIRST_PIDNS_INODE 0xeffffffcu /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

__attribute__((format(printf, 2, 0))) static int bpf_print(enum libbpf_print_level level,
							   const char *fmt, va_list ap)
{
	char line[256];

	(void)level;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("bpf.libbpf", "text=%s", log_str(line));
	return 0;
}

void bpf_log_quietly(void)
{
	libbpf_set_print(bpf_print);
}

int bpf_refuse(int error, const char *step, char *why, size_t why_size)
{
	const char *reason = strerror(error);

	if (error == EPERM || error == EACCES)
		reason =
			"permission denied: BPF needs CAP_BPF and CAP_PERFMON, a kernel that is not locked down and, before Linux 5.11, an unlimited RLIMIT_MEMLOCK";
	else if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		reason = "this kernel has no type information (/sys/kernel/btf/vmlinux)";
	snprintf(why, why_size, "%s: %s", step, reason);
	return -error;
}

bool bpf_pids_are_ours(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_PIDNS_INODE;
}
