/*
 * Native frames by frame pointers. libjvm keeps them in 95 % of its functions, libc does not: a leaf
 * there hides its direct caller. Where the chain breaks the Java part is found all the same, by the
 * thread's last Java frame, so only native frames between are missing.
 */
#include "agent/plain/asgct.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define STACK_BYTES_MAX (1u << 20)

bool guarded_read_sig(uint64_t addr, void *dst, uint32_t len)
{
	struct iovec local = { dst, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };

	return syscall(SYS_process_vm_readv, (long)getpid(), &local, 1ul, &remote, 1ul, 0ul) ==
	       (long)len;
}

bool walk_native_sig(struct walk *w, struct regs *regs, uint32_t max)
{
	uint64_t bottom = regs->sp;

	while (!in_code_cache(regs->pc)) {
		uint64_t saved[2]; /* caller's frame pointer, return address */

		if (w->n >= max || regs->pc < 4096)
			return false;
		w->frames[w->n++] = (struct walk_frame){
			.where = regs->pc,
			.bci = -1,
			.kind = WIRE_KIND_NATIVE,
		};
		if (regs->fp < regs->sp || regs->fp - bottom > STACK_BYTES_MAX || regs->fp % 8 ||
		    !guarded_read_sig(regs->fp, saved, sizeof(saved)))
			return false;
		regs->sp = regs->fp + 16;
		regs->fp = saved[0];
		regs->pc = saved[1];
	}
	return true;
}
