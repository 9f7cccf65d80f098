/* See guard.h. The one load that may fault is written in assembly, so that its address is known. */
#include "agent/base/guard.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/arch.h"
#include "agent/base/guard_priv.h"

#define PAGE	   4096ull
#define PAGE_SLOTS 64

/* guard_load_raw_sig(address): the word there; at a fault the hook continues at the second label */
extern const char guard_load_at_sig[], guard_load_failed_sig[];

#if defined(__x86_64__)
__asm__(".text\n"
	".globl guard_load_raw_sig, guard_load_at_sig, guard_load_failed_sig\n"
	".hidden guard_load_raw_sig, guard_load_at_sig, guard_load_failed_sig\n"
	".type guard_load_raw_sig, @function\n"
	"guard_load_raw_sig:\n"
	"guard_load_at_sig:\n"
	"	mov (%rdi), %rax\n"
	"	ret\n"
	"guard_load_failed_sig:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".size guard_load_raw_sig, . - guard_load_raw_sig\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl guard_load_raw_sig, guard_load_at_sig, guard_load_failed_sig\n"
	".hidden guard_load_raw_sig, guard_load_at_sig, guard_load_failed_sig\n"
	".type guard_load_raw_sig, @function\n"
	"guard_load_raw_sig:\n"
	"guard_load_at_sig:\n"
	"	ldr x0, [x0]\n"
	"	ret\n"
	"guard_load_failed_sig:\n"
	"	mov x0, #0\n"
	"	ret\n"
	".size guard_load_raw_sig, . - guard_load_raw_sig\n");
#endif

struct guard guard_state_sig;

static uint32_t inside;

bool guard_is_quiescent(void)
{
	/* a handler that enters from now on sees what was published before this load */
	return __atomic_load_n(&inside, __ATOMIC_SEQ_CST) == 0;
}

void guard_enter_sig(void)
{
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
}

void guard_leave_sig(void)
{
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

/* Pages that the kernel has reported as readable in this walk: page | epoch. */
static uint64_t pages[PAGE_SLOTS];

bool guard_readable_sig(uint64_t address)
{
	/* the kernel reads the set before it checks `how`: EINVAL = readable, else EFAULT. mincore
	 * would report a PROT_NONE guard page as mapped. */
	return syscall(SYS_rt_sigprocmask, -1L, address & ~7ull, NULL, 8L) < 0 && errno == EINVAL;
}

static bool is_readable(uint64_t address)
{
	uint64_t page = address & ~(PAGE - 1);
	uint64_t *slot = &pages[(page / PAGE) % PAGE_SLOTS];
	uint64_t mark =
		page | (__atomic_load_n(&guard_state_sig.epoch, __ATOMIC_RELAXED) & (PAGE - 1));

	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == mark)
		return true;
	if (!guard_readable_sig(address))
		return false;
	__atomic_store_n(slot, mark, __ATOMIC_RELAXED);
	return true;
}

bool guard_begin_sig(const sigset_t *interrupted_mask)
{
	uint64_t mask;

	__builtin_memcpy(&mask, interrupted_mask, sizeof(mask));
	if (!__atomic_load_n(&guard_state_sig.hooked, __ATOMIC_ACQUIRE)) {
		__atomic_fetch_add(&guard_state_sig.epoch, 1, __ATOMIC_RELAXED);
		return true;
	}
	return !(mask & (1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1)));
}

bool guard_is_hooked_sig(void)
{
	return __atomic_load_n(&guard_state_sig.hooked, __ATOMIC_RELAXED);
}

uint64_t guard_word_sig(uint64_t address)
{
	if (address < GUARD_LOW || address > GUARD_HIGH)
		return 0;
	address &= ~7ull;
	if (!__atomic_load_n(&guard_state_sig.hooked, __ATOMIC_RELAXED) && !is_readable(address))
		return 0;
	return guard_load_raw_sig(address);
}

void guard_copy_sig(void *to, uint64_t from, size_t n)
{
	uint8_t *out = to;

	while (n) {
		uint64_t word = guard_word_sig(from) >> (from & 7) * 8;
		size_t part = 8 - (from & 7);

		if (part > n)
			part = n;
		__builtin_memcpy(out, &word, part);
		out += part;
		from += part;
		n -= part;
	}
}

/* The instruction faults again, and the process ends as it would have without us. */
static void default_action(int signo)
{
	/* the kernel's struct sigaction: handler, flags, restorer, mask */
	uint64_t action[4] = { 0 };

	syscall(SYS_rt_sigaction, (long)signo, action, NULL, 8L);
}

static void guard_forward_sig(const struct sigaction *to, int signo, siginfo_t *info,
			      void *ucontext)
{
	if (to->sa_flags & SA_SIGINFO && to->sa_sigaction)
		to->sa_sigaction(signo, info, ucontext);
	else if (!(to->sa_flags & SA_SIGINFO) && to->sa_handler != SIG_DFL &&
		 to->sa_handler != SIG_IGN)
		to->sa_handler(signo);
	else
		default_action(signo);
}

void guard_hook_sig(int signo, siginfo_t *info, void *ucontext)
{
	struct regs regs = regs_get(ucontext);

	if (regs.pc != (uint64_t)(uintptr_t)guard_load_at_sig) {
		guard_forward_sig(signo == SIGBUS ? &guard_state_sig.bus : &guard_state_sig.segv,
				  signo, info, ucontext);
		return;
	}
	regs.pc = (uint64_t)(uintptr_t)guard_load_failed_sig;
	regs_set(ucontext, regs);
	__atomic_fetch_add(&guard_state_sig.faults, 1, __ATOMIC_RELAXED);
}
