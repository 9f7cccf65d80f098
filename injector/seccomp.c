/*
 * See seccomp.h. Filters are read by ptrace, which stops one thread for some 50 us. A thread that
 * sleeps on a futex is chosen, because that sleep resumes unnoticed, while an epoll_wait() would
 * return EINTR. There is no other way to read them; a fork() in the target, to try the calls, would
 * copy the page tables of its whole heap.
 */
#include "injector/seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "daemon/ground/log.h"
#include "daemon/ground/proc.h"
#include "injector/filters.h"
#include "proto/agent_calls.h"

#define FILTERS_MAX	 64
#define INSTRUCTIONS_MAX 4096 /* BPF_MAXINSNS */
#define STOP_MS		 200
#define SLEEPER_MS	 1000 /* wait for a thread that sleeps */
#define SLEEPER_PAUSE_MS 20
#define THREADS_MAX	 1024

#ifdef __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH AUDIT_ARCH_X86_64
#endif

/* ---- running a filter ------------------------------------------------------------------------ */

struct machine {
	uint32_t a, x, mem[BPF_MEMWORDS];
	const struct seccomp_data *data;
};

static uint32_t seccomp_load(const struct machine *m, uint32_t offset)
{
	uint32_t word = 0;

	if (offset % 4 == 0 && offset <= sizeof(*m->data) - 4)
		memcpy(&word, (const uint8_t *)m->data + offset, 4);
	return word;
}

static uint32_t seccomp_compute(uint32_t a, uint16_t op, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default: /* BPF_NEG */
		return 0 - a;
	}
}

static bool seccomp_compare(uint32_t a, uint16_t op, uint32_t b)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default: /* BPF_JSET */
		return a & b;
	}
}

static uint32_t seccomp_value(const struct machine *m, const struct sock_filter *f)
{
	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		return seccomp_load(m, f->k);
	case BPF_MEM:
		return m->mem[f->k % BPF_MEMWORDS];
	case BPF_LEN:
		return sizeof(struct seccomp_data);
	default: /* BPF_IMM */
		return f->k;
	}
}

static void seccomp_step(struct machine *m, const struct sock_filter *f)
{
	switch (BPF_CLASS(f->code)) {
	case BPF_LD:
		m->a = seccomp_value(m, f);
		break;
	case BPF_LDX:
		m->x = seccomp_value(m, f);
		break;
	case BPF_ST:
		m->mem[f->k % BPF_MEMWORDS] = m->a;
		break;
	case BPF_STX:
		m->mem[f->k % BPF_MEMWORDS] = m->x;
		break;
	case BPF_ALU:
		m->a = seccomp_compute(m->a, BPF_OP(f->code),
				       BPF_SRC(f->code) == BPF_X ? m->x : f->k);
		break;
	case BPF_MISC:
		if (BPF_MISCOP(f->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		break;
	default:
		break;
	}
}

uint32_t seccomp_run(const struct sock_filter *code, size_t len, const struct seccomp_data *data)
{
	struct machine m = { .data = data };

	/* jumps only go forward, so the loop ends */
	for (size_t pc = 0; pc < len; pc++) {
		const struct sock_filter *f = &code[pc];

		if (BPF_CLASS(f->code) == BPF_RET)
			return BPF_RVAL(f->code) == BPF_A ? m.a : f->k;
		if (BPF_CLASS(f->code) != BPF_JMP)
			seccomp_step(&m, f);
		else if (BPF_OP(f->code) == BPF_JA)
			pc += f->k;
		else
			pc += seccomp_compare(m.a, BPF_OP(f->code),
					      BPF_SRC(f->code) == BPF_X ? m.x : f->k)
				      ? f->jt
				      : f->jf;
	}
	return SECCOMP_RET_ALLOW;
}

bool seccomp_is_deadly(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
	       action == SECCOMP_RET_TRAP;
}

/* ---- the target's filters ------------------------------------------------------------------- */

/* The name of the agent's first system call for which this filter would end the process; NULL =
 * none. */
static const char *deadly_call(const struct sock_filter *code, size_t len)
{
	for (size_t i = 0; i < agent_call_count; i++) {
		struct seccomp_data data = { .nr = agent_calls[i].nr, .arch = ARCH };

		memcpy(data.args, agent_calls[i].args, sizeof(data.args));
		if (seccomp_is_deadly(seccomp_run(code, len, &data)))
			return agent_calls[i].name;
	}
	return NULL;
}

/* Reads the filters of a thread that is stopped by ptrace. 0, or -errno if they cannot be read. */
static int seccomp_check_filters(pid_t tid, const char **ret_name)
{
	static struct sock_filter code[INSTRUCTIONS_MAX];

	for (long i = 0; i < FILTERS_MAX && !*ret_name; i++) {
		long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, NULL);

		if (n < 0 && errno == ENOENT) /* there are no more filters */
			return 0;
		if (n < 0)
			return -errno;
		if (n > INSTRUCTIONS_MAX ||
		    ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)i, code) != n)
			return -EPROTO;
		*ret_name = deadly_call(code, (size_t)n);
	}
	return 0;
}

/* PTRACE_SEIZE sends no SIGSTOP, and the thread resumes by itself if this process dies. */
static int seccomp_stop_and_check(pid_t tid, const char **ret_name)
{
	int r = -ETIMEDOUT, status = 0, signal;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
		for (int ms = 0; ms < STOP_MS; ms++) {
			if (waitpid(tid, &status, __WALL | WNOHANG) == tid) {
				if (WIFSTOPPED(status))
					r = seccomp_check_filters(tid, ret_name);
				break;
			}
			inject_pause_ms(1);
		}
	/* if a signal stopped the thread first, it is delivered now */
	signal = WIFSTOPPED(status) && status >> 16 == 0 ? WSTOPSIG(status) : 0;
	(void)ptrace(PTRACE_DETACH, tid, NULL, (void *)(long)signal);
	return r;
}

/* Finds a thread that sleeps on a futex: nearly all threads of a JVM do, the main thread
 * included. 0 = none. */
static pid_t find_sleeper(const struct inject *in)
{
	CLEANUP(fd_closep)
	int dfd = openat(in->proc_dfd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dfd >= 0 ? fdopendir(fcntl(dfd, F_DUPFD_CLOEXEC, 3)) : NULL;
	char path[300], call[256];
	struct dirent *e;
	pid_t tid = 0;

	for (int i = 0; dir && !tid && i < THREADS_MAX && (e = readdir(dir)); i++) {
		snprintf(path, sizeof(path), "%s/syscall", e->d_name);
		if (proc_read(dfd, path, call, sizeof(call)) > 0 && call[0] >= '0' &&
		    call[0] <= '9' && strtol(call, NULL, 10) == SYS_futex)
			tid = (pid_t)strtol(e->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return tid;
}

int seccomp_read(const struct inject *in, const char **ret_name)
{
	pid_t tid = find_sleeper(in);

	*ret_name = NULL;
	return tid ? seccomp_stop_and_check(tid, ret_name) : -EBUSY;
}

/* @ret_name: "" = none. A process with a filter cannot read those of others, so it asks
 * kindling-filters. */
static int read_or_ask(const struct inject *in, char *ret_name, size_t size)
{
	const char *name;
	int r;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER)
		return filters_ask(in, ret_name, size);
	r = seccomp_read(in, &name);
	if (r == 0)
		snprintf(ret_name, size, "%s", name ? name : "");
	return r;
}

/* Retries for a second, because no thread may sleep at the moment in a JVM that is starting or gets
 * little CPU time. */
static int seccomp_read_retrying(const struct inject *in, char *ret_name, size_t size)
{
	int r = read_or_ask(in, ret_name, size);

	for (int ms = 0; (r == -EBUSY || r == -ETIMEDOUT) && ms < SLEEPER_MS &&
			 inject_remaining_ms(in) > SLEEPER_MS;
	     ms += SLEEPER_PAUSE_MS) {
		inject_pause_ms(SLEEPER_PAUSE_MS);
		r = read_or_ask(in, ret_name, size);
	}
	return r;
}

int seccomp_check(struct inject *in)
{
	char status[16384], mode[16], name[32] = "";
	int r;

	if (!in->loads)
		return 0;
	if (proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0 ||
	    !proc_field(status, "Seccomp:", mode, sizeof(mode)) || mode[0] != '2')
		return 0;
	if (in->only_checks && !in->reads_seccomp)
		return fault_set(
			in->fault, EACCES, FAULT_PREFLIGHT,
			"the JVM has a seccomp filter that this command did not read; an attach reads it");
	r = seccomp_read_retrying(in, name, sizeof(name));
	if (r == -EBUSY)
		return fault_set(
			in->fault, EAGAIN, FAULT_PREFLIGHT,
			"the JVM has a seccomp filter that cannot be read now: none of its threads sleeps");
	if (r < 0 && in->only_checks)
		return fault_set(in->fault, EACCES, FAULT_PREFLIGHT,
				 "the JVM has a seccomp filter that cannot be read (%s)",
				 strerror(-r));
	if (r < 0) /* the attach continues; the log shows why the filters were not read */
		log_warn("seccomp.unread", "pid=%d error=%s", (int)in->pid, log_str(strerror(-r)));
	if (!name[0])
		return 0;
	fault_set(in->fault, EPERM, FAULT_PREFLIGHT,
		  "its seccomp filter would kill the JVM when the agent calls %s()", name);
	in->fault->flags |= FAULT_PERMANENT;
	return -EPERM;
}
