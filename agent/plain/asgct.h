/* What asgct.c prepares for the handler, and native_sig.c's part of a walk. */
#pragma once

#include "agent/plain/arch.h"
#include "agent/walker/walker.h"

/* forte.cpp: the frame and trace of AsyncGetCallTrace, an unofficial interface since JDK 5 */
struct asgct_frame {
	int32_t bci; /* -3 = native method */
	jmethodID method;
};

struct asgct_trace {
	JNIEnv *env;
	int32_t n; /* <= 0: why there are no frames */
	struct asgct_frame *frames;
};

typedef void asgct_fn(struct asgct_trace *trace, int32_t depth, void *ucontext);

struct asgct {
	asgct_fn *call;
	JavaVM *vm;
	uint64_t code_low, code_high; /* JIT code */
};

extern struct asgct asgct;

/* Copies @len bytes at @addr of this process; false if they are not all readable. A raw
 * process_vm_readv: a bad address is an error there, not a fault. */
bool guarded_read_sig(uint64_t addr, void *dst, uint32_t len);

static inline bool in_code_cache(uint64_t pc)
{
	return pc >= asgct.code_low && pc < asgct.code_high;
}

/*
 * Native frames from @regs up by frame pointers, until JIT code (true, @regs is the Java frame's)
 * or until the chain ends (false).
 */
bool walk_native_sig(struct walk *w, struct regs *regs, uint32_t max);
