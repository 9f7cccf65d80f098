/* See host.h. */
#include "agent/engine/host.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/engine/slots.h"
#include "proto/host_cookie.h"

/* A thread in a long system call gets its signal late, and the stack is then right for all of that
 * time. Beyond this limit it is unknown which stack the time belongs to. */
#define LAG_NS_MAX	  (250 * NS_PER_MS)
#define LAG_INTERVALS_MAX 16
#define WINDOW		  16 /* samples over which a difference is corrected */

uint64_t host_lag_max_ns_sig(void)
{
	uint64_t ns = LAG_INTERVALS_MAX * engine.interval_ns;

	return ns > LAG_NS_MAX ? ns : LAG_NS_MAX;
}

/* Signals of BPF programs come from the kernel and have no sender. */
static bool host_sent_sig(const siginfo_t *info)
{
	return info->si_code == SI_KERNEL && info->si_pid == 0 && engine.host &&
	       __atomic_load_n(&engine.running, __ATOMIC_ACQUIRE);
}

static uint64_t host_own_cpu_ns_sig(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Claims the thread's CPU time up to @now that has not been accounted for. The caller must account
 * for what is returned. */
static uint64_t host_claim_cpu_time_sig(struct slot *slot, uint64_t now)
{
	uint64_t seen = __atomic_load_n(&slot->seen_cpu_ns, __ATOMIC_RELAXED);
	/* far ahead of this thread's clock: it belongs to an earlier thread with this tid, whose
	 * end was not seen */
	uint64_t from = seen > now + NS_PER_MS ? 0 : seen;

	if (now <= from || !__atomic_compare_exchange_n(&slot->seen_cpu_ns, &seen, now, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0; /* a scan has just accounted for it */
	return now - from;
}

/* The part of @missing_ns that is added to one sample. */
static int64_t host_correction_sig(int64_t missing_ns)
{
	int64_t part = missing_ns / WINDOW, most = (int64_t)(engine.interval_ns / 2);

	if (part > most)
		return most;
	return part < -most ? -most : part;
}

/* The CPU time that the thread's ticks stand for. Kernels without bpf_send_signal_task() cannot
 * pass it (0). A value far above the thread's own CPU time belongs to another thread. */
static uint64_t host_owed_sig(uint64_t owed_ns, uint64_t elapsed_ns)
{
	if (owed_ns == 0 || owed_ns > elapsed_ns + host_lag_max_ns_sig())
		return engine.interval_ns;
	return owed_ns;
}

/* The weight of a sample of @slot. @elapsed_ns: CPU time of its thread since the last sample. */
static uint64_t host_weigh_sig(struct slot *slot, uint64_t owed_ns, uint64_t elapsed_ns, bool young)
{
	/* taken before this sample's own difference is added, so that a late signal does not get a
	 * larger weight */
	int64_t own_ns = host_correction_sig(slot->missing_ns);
	int64_t of_pool_ns =
		young ? host_correction_sig(__atomic_load_n(&engine.pool_ns, __ATOMIC_RELAXED)) : 0;
	int64_t least = (int64_t)(owed_ns / 4);

	if ((int64_t)owed_ns + own_ns + of_pool_ns < least)
		own_ns = least - (int64_t)owed_ns - of_pool_ns;
	slot->missing_ns += (int64_t)elapsed_ns - (int64_t)owed_ns - own_ns;
	__atomic_fetch_sub(&engine.pool_ns, of_pool_ns, __ATOMIC_RELAXED);
	return (uint64_t)((int64_t)owed_ns + own_ns + of_pool_ns);
}

/* The weight of a sample for ticks that stand for @owed_ns; 0 = no sample is due. */
static uint64_t host_weight_sig(struct slot *slot, uint64_t owed_ns)
{
	uint64_t now = host_own_cpu_ns_sig(), elapsed_ns = host_claim_cpu_time_sig(slot, now);

	if (!elapsed_ns)
		return 0;
	owed_ns = host_owed_sig(owed_ns, elapsed_ns);
	if (elapsed_ns > owed_ns + host_lag_max_ns_sig()) {
		engine_account_sig(slot->tid, NULL, elapsed_ns - owed_ns, "[no signal]");
		elapsed_ns = owed_ns;
	}
	return host_weigh_sig(slot, owed_ns, elapsed_ns, now < WINDOW * engine.interval_ns);
}

static void host_sample_sig(const siginfo_t *info, void *ucontext)
{
	uint64_t cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr, owed_ns = cookie;
	struct slot *slot = slot_find_sig((uint32_t)syscall(SYS_gettid));
	uint64_t weight_ns = 0, off_ns = 0;
	bool ticked = true;

	/* without a slot: the next scan finds the thread and accounts for its CPU time until then;
	 * the daemon knows the time off the CPU without the agent */
	if (!slot || __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != SLOT_HOST)
		return;
	if (engine.off_signo && info->si_signo == engine.off_signo)
		cookie = host_cookie_offcpu(HOST_COOKIE_OFFCPU_UNKNOWN_NS, 0);
	if (host_cookie_is_offcpu(cookie)) {
		owed_ns = host_cookie_intervals(cookie) * engine.interval_ns;
		ticked = owed_ns != 0;
		if (__atomic_load_n(&engine.offcpu, __ATOMIC_RELAXED))
			off_ns = host_cookie_off_ns(cookie);
	}
	if (ticked)
		weight_ns = host_weight_sig(slot, owed_ns);
	if (weight_ns || off_ns)
		slot_sample_sig(slot, weight_ns, off_ns, ucontext);
}

bool host_on_signal_sig(const siginfo_t *info, void *ucontext)
{
	if (!host_sent_sig(info))
		return false;
	host_sample_sig(info, ucontext);
	return true;
}

void host_thread_end(const struct slot *s, const char *name)
{
	uint64_t used = host_own_cpu_ns_sig();
	uint64_t rest_ns = used > s->seen_cpu_ns ? used - s->seen_cpu_ns : 0;
	int64_t left_ns = s->missing_ns, most = (int64_t)host_lag_max_ns_sig(), pool_ns;

	if (rest_ns > host_lag_max_ns_sig())
		engine_account_sig(s->tid, name, rest_ns, "[no signal]");
	else
		left_ns += (int64_t)rest_ns;
	pool_ns = __atomic_load_n(&engine.pool_ns, __ATOMIC_RELAXED);
	/* too much for young threads to make up for: signals do not reach threads like this one */
	if (left_ns > 0 && pool_ns + left_ns > most)
		engine_account_sig(s->tid, name, (uint64_t)left_ns, "[no signal]");
	else if (left_ns > 0 || pool_ns + left_ns > -most)
		__atomic_fetch_add(&engine.pool_ns, left_ns, __ATOMIC_RELAXED);
}
