/*
 * The unwinder of native code in the signal handler, and the table that the agent's thread prepares
 * for it: executable mappings, sorted, with their unwind rows. A published table never changes;
 * after its replacement it is freed when no handler can be reading it any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/arch.h"
#include "agent/base/walk.h"
#include "agent/walker/native/cfi.h"

#define NATIVE_FRAMES_MAX 256

struct unwind_range {
	uint64_t start, end; /* addresses of the executable bytes */
	uint64_t base; /* address from which the pc of a row counts */
	const struct cfi_table *rows; /* NULL = none */
	bool musl; /* it is musl's libc, which has no useful rows, and in which threads begin */
};

struct unwind_table {
	uint32_t generation;
	uint32_t n;
	struct unwind_range ranges[];
};

/* Agent's thread. Publishes a table and returns the one that it replaces (NULL at first), which the
 * caller owns. */
struct unwind_table *unwind_publish(struct unwind_table *table);
uint64_t unwind_cache_bytes(void);

/* The stack of the interrupted thread, from sp upwards, as far as its pages can be read. */
struct unwind_stack {
	uint64_t sp; /* at the interrupted instruction */
	uint64_t low, high; /* known to be readable */
	uint64_t link; /* return address of the interrupted code if it is in a register, set by the
			* caller; 0 = it is on the stack */
	uint64_t context; /* address of the ucontext_t if the walk has just passed the frame of a
			   * signal handler, whose caller was interrupted too; 0 = it has not */
};

enum unwind_end {
	UNWIND_BROKEN, /* no rule, or no plausible caller */
	UNWIND_ROOT, /* the thread's first function */
	UNWIND_JAVA, /* the next frame is in the code cache; regs are its registers */
	UNWIND_TOO_DEEP,
};

bool unwind_is_code_sig(uint64_t pc); /* is it in an executable mapping of the table? */
void unwind_stack_init_sig(struct unwind_stack *stack, uint64_t sp);
/* Loads a word of the stack; false = it is not part of the stack or not readable. */
bool unwind_load_sig(struct unwind_stack *stack, uint64_t address, uint64_t *ret);
/*
 * Writes native frames, beginning with the one of @regs, into frames[*n...max), and counts them in
 * @n. Call it between guard_enter_sig() and guard_leave_sig(). @leaf: @regs are those of an
 * interrupted instruction, not of a call. On UNWIND_JAVA @regs are the registers of the calling
 * Java frame.
 */
enum unwind_end unwind_native_sig(struct unwind_stack *stack, struct regs *regs,
				  struct walk_frame *frames, uint32_t *n, bool leaf, uint32_t max);
