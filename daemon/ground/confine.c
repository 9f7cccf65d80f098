/* See confine.h. */
#include "daemon/ground/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 120
#define CAPS_MAX  64

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* ---- capabilities --------------------------------------------------------------------------- */

static void confine_bound(uint64_t keep)
{
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int cap = 0; cap < CAPS_MAX; cap++)
		if (!(keep >> cap & 1))
			(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int confine_keep_only(uint64_t keep)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 0 } };

	if (keep && syscall(SYS_capget, &header, sets) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		sets[i].permitted &= (uint32_t)(keep >> (32 * i));
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

int confine_capabilities(uint64_t keep)
{
	confine_bound(keep);
	return confine_keep_only(keep);
}

int confine_become(uid_t uid, gid_t gid, const char *account, uint64_t keep)
{
	confine_bound(keep); /* needs CAP_SETPCAP, so before the user changes */
	if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	if (setgroups(0, NULL) < 0 || (account && initgroups(account, gid) < 0) ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	(void)prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	return confine_keep_only(keep);
}

/* Reads the file itself: getpwnam(3) may use other name services, which may block and leave
 * descriptors open. */
static bool confine_find_account(const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *p;
	bool found = false;

	while (file && !found && (p = fgetpwent(file))) {
		if (strcmp(p->pw_name, name) != 0 || p->pw_uid == 0)
			continue;
		*ret_uid = p->pw_uid;
		*ret_gid = p->pw_gid;
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

int confine_user(const char *name, uid_t uid, uint64_t keep)
{
	gid_t gid = uid;
	int r;

	if (geteuid() != 0)
		return confine_capabilities(keep);
	(void)confine_find_account(name, &uid, &gid);
	r = confine_become(uid, gid, NULL, keep);
	return r == -EINVAL ? confine_become(CONFINE_NOBODY, CONFINE_NOBODY, NULL, keep) : r;
}

/* ---- system calls --------------------------------------------------------------------------- */

int confine_calls(const int *calls, size_t n, uint32_t otherwise)
{
	struct sock_filter code[4 + 2 * CALLS_MAX + 1] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { 4, code };

	if (n > CALLS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								   (uint32_t)calls[i], 0, 1);
		code[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}
