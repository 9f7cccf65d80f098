/*
 * What the agent's thread prepares for the signal handler to find its way through native code: a
 * sorted table of executable mappings with their unwind rows. A table is never changed once
 * published; a replaced one is freed when no handler can still be reading it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/arch.h"
#include "agent/base/walk.h"
#include "agent/walker/native/cfi.h"

#define NATIVE_FRAMES_MAX 256

struct unwind_range {
	uint64_t start, end; /* executable bytes */
	uint64_t base; /* the rows' pc counts from here */
	const struct cfi_table *rows; /* NULL = none */
	bool musl; /* has no rows to speak of: its own code is where a thread ends */
};

struct unwind_table {
	uint32_t generation;
	uint32_t n;
	struct unwind_range ranges[];
};

/* Agent's thread. Publish a table and hand back the one it replaces (NULL at first). */
struct unwind_table *unwind_publish(struct unwind_table *table);
uint64_t unwind_cache_bytes(void);

/* The stack of the interrupted thread, upwards from sp, page by page as far as it is readable. */
struct unwind_stack {
	uint64_t sp; /* of the interrupted instruction */
	uint64_t low, high; /* known to be readable */
	uint64_t link; /* where the interrupted instruction returns to if that is not on the stack;
			* set by whoever has the context. 0 = it is */
	uint64_t context; /* address of the ucontext_t of a signal handler that was walked through
			   * last: what came after is interrupted code again; 0 = none */
};

enum unwind_end {
	UNWIND_BROKEN, /* no rule, or nowhere to go */
	UNWIND_ROOT, /* the thread's first function */
	UNWIND_JAVA, /* the next frame lies in the code cache: regs are its registers */
	UNWIND_TOO_DEEP,
};

bool unwind_is_code_sig(uint64_t pc); /* in an executable mapping of the table */
void unwind_stack_init_sig(struct unwind_stack *stack, uint64_t sp);
/* Load a word of the stack; false when it is not part of it or not readable. */
bool unwind_load_sig(struct unwind_stack *stack, uint64_t address, uint64_t *ret);
/*
 * Native frames from @regs upwards, leaf first, into frames[*n...max). Between guard_enter_sig()
 * and guard_leave_sig(). @leaf: @regs are of an interrupted instruction, not of a call. On
 * UNWIND_JAVA @regs are those of the Java frame that called.
 */
enum unwind_end unwind_native_sig(struct unwind_stack *stack, struct regs *regs,
				  struct walk_frame *frames, uint32_t *n, bool leaf, uint32_t max);
