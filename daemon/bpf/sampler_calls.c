/* The system calls in which a tick is put off before Linux 6.18: those that a signal ends with
 * EINTR whatever SA_RESTART says (signal(7)), and that mostly wait. Calls that receive, send or
 * connect are not among them: they take much CPU time without waiting, and a signal ends them only
 * where the socket has a timeout of its own (SO_RCVTIMEO, SO_SNDTIMEO). */
#include <linux/types.h>
#include <stddef.h>
#include <sys/syscall.h>
#include "daemon/bpf/bpf_priv.h"
#include "daemon/bpf/sampler.h"
#include "daemon/ground/mem.h"

static const struct {
	short nr;
	unsigned char wait;
} calls[] = {
	{ SYS_nanosleep, SAMPLER_WAIT },	{ SYS_clock_nanosleep, SAMPLER_WAIT },
	{ SYS_rt_sigtimedwait, SAMPLER_WAIT },	{ SYS_semop, SAMPLER_WAIT },
	{ SYS_semtimedop, SAMPLER_WAIT },	{ SYS_msgrcv, SAMPLER_WAIT },
	{ SYS_msgsnd, SAMPLER_WAIT },		{ SYS_accept, SAMPLER_WAIT },
	{ SYS_accept4, SAMPLER_WAIT },		{ SYS_ppoll, SAMPLER_WAIT },
	{ SYS_pselect6, SAMPLER_WAIT },		{ SYS_epoll_pwait, SAMPLER_WAIT_EPOLL },
	{ SYS_futex, SAMPLER_WAIT_FUTEX },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, SAMPLER_WAIT },
#endif
#ifdef SYS_futex_waitv
	{ SYS_futex_waitv, SAMPLER_WAIT },
#endif
#ifdef SYS_futex_wait
	{ SYS_futex_wait, SAMPLER_WAIT },
#endif
#ifdef SYS_poll /* not on arm64 */
	{ SYS_poll, SAMPLER_WAIT_POLL },	{ SYS_select, SAMPLER_WAIT },
	{ SYS_epoll_wait, SAMPLER_WAIT_EPOLL }, { SYS_pause, SAMPLER_WAIT },
#endif
};

void sampler_calls_fill(unsigned char *of_call, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if ((size_t)calls[i].nr < n)
			of_call[calls[i].nr] = calls[i].wait;
}
