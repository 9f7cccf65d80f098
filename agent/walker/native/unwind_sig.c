/*
 * See unwind.h. Rules come from the rows of the published table, through a cache by pc. A page of
 * the stack is read only after the kernel has confirmed that it is readable.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code_cache.h"
#include "agent/walker/native/emulate.h"
#include "agent/walker/native/unwind.h"

#define PAGE	       4096ull /* larger pages are checked in parts */
#define STACK_SPAN_MAX (1ull << 20)
#define CACHE_SLOTS    8192

/* Two words, key ^ value and value. No lock is needed: if two writers mix their words, the result
 * matches no key. */
struct cache_slot {
	uint64_t mixed, value;
};

static struct unwind_table *table_now;
static struct cache_slot cache[CACHE_SLOTS];

struct unwind_table *unwind_publish(struct unwind_table *table)
{
	return __atomic_exchange_n(&table_now, table, __ATOMIC_SEQ_CST);
}

uint64_t unwind_cache_bytes(void)
{
	return sizeof(cache);
}

void unwind_stack_init_sig(struct unwind_stack *stack, uint64_t sp)
{
	stack->sp = sp;
	stack->low = stack->high = sp & ~(PAGE - 1);
	stack->link = 0;
	stack->context = 0;
}

/* Not checked by sanitizers, to which a read of another function's frame is an overflow. */
__attribute__((no_sanitize("address", "undefined"))) static uint64_t unwind_load(uint64_t address)
{
	return *(const volatile uint64_t *)address;
}

bool unwind_load_sig(struct unwind_stack *stack, uint64_t address, uint64_t *ret)
{
	if (address % 8 || address < stack->sp - ARCH_RED_ZONE ||
	    address >= stack->sp + STACK_SPAN_MAX)
		return false;
	if (address < stack->low) {
		if (!guard_readable_sig(address))
			return false;
		stack->low = address & ~(PAGE - 1);
	}
	while (address >= stack->high) {
		if (!guard_readable_sig(stack->high))
			return false;
		stack->high += PAGE;
	}
	*ret = unwind_load(address);
	return true;
}

static const struct unwind_range *find_range(const struct unwind_table *t, uint64_t pc)
{
	uint32_t low = 0, high = t ? t->n : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (pc < t->ranges[middle].start)
			high = middle;
		else if (pc >= t->ranges[middle].end)
			low = middle + 1;
		else
			return &t->ranges[middle];
	}
	return NULL;
}

bool unwind_is_code_sig(uint64_t pc)
{
	return find_range(__atomic_load_n(&table_now, __ATOMIC_SEQ_CST), pc) != NULL;
}

/* The rule for a pc; for a pc outside all ranges CFI_NONE, which is not cached. */
static uint32_t find_rule(const struct unwind_table *t, uint64_t pc)
{
	uint64_t key = pc ^ (uint64_t)t->generation << 48;
	struct cache_slot *slot = &cache[(pc ^ pc >> 13) % CACHE_SLOTS];
	uint64_t value = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);
	const struct unwind_range *range;

	/* bit 32 marks a filled slot */
	if (value && (__atomic_load_n(&slot->mixed, __ATOMIC_RELAXED) ^ value) == key)
		return (uint32_t)value;
	range = find_range(t, pc);
	if (!range)
		return CFI_NONE;
	value = cfi_find(range->rows, (uint32_t)(pc - range->base)) | 1ull << 32;
	__atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->mixed, key ^ value, __ATOMIC_RELAXED);
	return (uint32_t)value;
}

/* For code without a rule: rbp or x29 is taken for a frame pointer if the frame's return address is
 * in known code. */
static bool step_frame_pointer(const struct unwind_table *t, struct unwind_stack *stack,
			       struct regs *regs)
{
	uint64_t fp, pc;

	if (regs->fp < regs->sp || !unwind_load_sig(stack, regs->fp, &fp) ||
	    !unwind_load_sig(stack, regs->fp + 8, &pc))
		return false;
	pc = arch_code(pc);
	if (!code_cache_has(pc) && !find_range(t, pc))
		return false;
	regs->sp = regs->fp + 16;
	regs->fp = fp;
	regs->pc = pc;
	return true;
}

static bool step_rule(struct unwind_stack *stack, struct regs *regs, uint32_t rule)
{
	uint64_t cfa, fp = regs->fp, ra = cfi_rule_ra(rule), pc = stack->link;

	switch (cfi_rule_kind(rule)) {
	case CFI_SP:
		cfa = regs->sp + cfi_rule_offset(rule);
		break;
	case CFI_FP:
		cfa = regs->fp + cfi_rule_offset(rule);
		break;
	case CFI_PLT:
		cfa = regs->sp + ((regs->pc & 15) >= 11 ? 16 : 8);
		break;
	default:
		return false;
	}
	/* either the function has a frame, or its return address is still in the register, which is
	 * possible only in interrupted code */
	if (cfa < regs->sp || (ra ? cfa == regs->sp : !pc))
		return false;
	if (ra && !unwind_load_sig(stack, cfa - ra, &pc))
		return false;
	if (cfi_rule_fp(rule) && !unwind_load_sig(stack, cfa - cfi_rule_fp(rule), &fp))
		return false;
	regs->sp = cfa;
	regs->fp = fp;
	regs->pc = arch_code(pc);
	return true;
}

/* For interrupted code without rows, such as a PLT stub: the return address is taken from the
 * register. */
static bool step_link(const struct unwind_table *t, const struct unwind_stack *stack,
		      struct regs *regs)
{
	uint64_t link = stack->link;

	if (!link || (!code_cache_has(link) && !find_range(t, link)))
		return false;
	regs->pc = link;
	return true;
}

/* For code of musl, which has neither rows nor frame pointers: emulates the instructions. */
static bool step_emulated(const struct unwind_table *t, struct unwind_stack *stack,
			  struct regs *regs)
{
	const struct unwind_range *range = find_range(t, regs->pc);
	struct emulation f = {
		.pc = regs->pc,
		.known = 1u << GPR_RSP | 1u << GPR_RBP,
		.low = stack->sp - ARCH_RED_ZONE,
		.high = stack->sp + STACK_SPAN_MAX,
	};
	uint64_t top;

	if (!range || !range->musl || !unwind_load_sig(stack, regs->sp, &top))
		return false;
	f.reg[GPR_RSP] = regs->sp;
	f.reg[GPR_RBP] = regs->fp;
	if (emulate_sig(&f, EMULATE_STEPS_FUNCTION) != EMULATE_RETURNED)
		return false;
	if (f.reg[GPR_RSP] <= regs->sp || (!code_cache_has(f.pc) && !find_range(t, f.pc)))
		return false;
	regs->pc = f.pc;
	regs->sp = f.reg[GPR_RSP];
	if (emulation_knows(&f, GPR_RBP))
		regs->fp = f.reg[GPR_RBP];
	return true;
}

/* Has the walk reached the code with which a thread begins? musl has no rows to mark it. The first
 * frame of a goroutine has the frame pointer 0, as the ABI requires of an outermost frame. */
static bool is_thread_start(const struct unwind_table *t, const struct regs *regs, bool leaf)
{
	const struct unwind_range *range;

	if (!regs->pc)
		return true;
	if (leaf)
		return false;
	range = find_range(t, regs->pc);
	return range && (range->musl || !regs->fp);
}

/* Moves from the return code of a signal handler to the interrupted code, whose registers are in
 * the context that the kernel has pushed. */
static bool step_signal(struct unwind_stack *stack, struct regs *regs, bool leaf)
{
	uint64_t context = regs->sp + ARCH_SIGRETURN_CONTEXT;
	struct regs before;

	if ((load_code_sig(regs->pc) != ARCH_SIGRETURN_CODE &&
	     !(leaf && load_code_sig(regs->pc - ARCH_SIGRETURN_SECOND) == ARCH_SIGRETURN_CODE)) ||
	    !unwind_load_sig(stack, context + ARCH_CONTEXT_PC, &before.pc) ||
	    !unwind_load_sig(stack, context + ARCH_CONTEXT_SP, &before.sp) ||
	    !unwind_load_sig(stack, context + ARCH_CONTEXT_FP, &before.fp))
		return false;
	stack->context = context;
	stack->link = regs_link_at(context, load64_sig);
	*regs = before;
	return true;
}

enum unwind_end unwind_native_sig(struct unwind_stack *stack, struct regs *regs,
				  struct walk_frame *frames, uint32_t *n, bool leaf, uint32_t max)
{
	const struct unwind_table *t = __atomic_load_n(&table_now, __ATOMIC_SEQ_CST);

	for (bool interrupted = false;; leaf = interrupted, interrupted = false) {
		uint32_t rule;

		if (code_cache_has(regs->pc))
			return UNWIND_JAVA;
		if (!regs->pc)
			return leaf ? UNWIND_BROKEN : UNWIND_ROOT;
		if (*n >= max)
			return UNWIND_TOO_DEEP;
		frames[(*n)++] = (struct walk_frame){ .where = regs->pc,
						      .bci = -1,
						      .kind = WIRE_KIND_NATIVE };
		if (!t)
			return UNWIND_BROKEN;
		stack->context = 0;
		if (step_signal(stack, regs, leaf)) { /* the next frame was interrupted as well: its
						       * pc is no return address */
			interrupted = true;
			continue;
		}
		/* a return address may be the first byte of the next function, so the address of
		 * the call is looked up */
		rule = find_rule(t, leaf ? regs->pc : regs->pc - 1);
		if (cfi_rule_kind(rule) == CFI_END)
			return UNWIND_ROOT;
		if (rule == CFI_NONE && step_emulated(t, stack, regs)) {
			stack->link = 0;
			continue;
		}
		if (rule == CFI_NONE && is_thread_start(t, regs, leaf))
			return UNWIND_ROOT;
		if (step_rule(stack, regs, rule) || (leaf && step_link(t, stack, regs)) ||
		    step_frame_pointer(t, stack, regs)) {
			stack->link = 0;
			continue;
		}
		return is_thread_start(t, regs, leaf) ? UNWIND_ROOT : UNWIND_BROKEN;
	}
}
