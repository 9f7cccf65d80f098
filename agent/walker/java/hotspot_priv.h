/* One walk under way, shared by the files that know a kind of frame each. Handler code only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/arch.h"
#include "agent/base/guard.h"
#include "agent/base/walk.h"
#include "agent/hotspot/code.h"
#include "agent/hotspot/code_cache.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/machine.h"
#include "agent/hotspot/method.h"
#include "agent/walker/native/unwind.h"

struct hot {
	struct walk *w;
	struct regs at; /* pc, sp and fp of the frame looked at now */
	uint64_t low, high; /* the stack: low is the red zone below the interrupted sp */
	uint64_t thread; /* JavaThread*, 0 = not a Java thread */
	struct machine regs; /* of the interrupted instruction */
	uint64_t context; /* the ucontext_t that has all of them */
	uint64_t link; /* where that returns to if it is not on the stack; 0 = it is */
	bool leaf; /* at is the interrupted instruction, not a return address */
	bool exact; /* the nmethod has debug information at exactly this pc */
	bool behind; /* it has none there or behind: code of a barrier */
	bool java_seen;
	walk_enough_fn *enough; /* NULL = the whole stack */
	/* the thread is in the middle of putting frames into its chunks: where doYield, which does
	 * it, returns to, and how many frames were counted up to it */
	uint64_t yield_pc;
	uint32_t yield_n;
	const char *broken; /* cause, once the walk cannot go on */
};

static inline bool hot_on_stack(const struct hot *h, uint64_t address)
{
	return address >= h->low && address < h->high && address % 8 == 0;
}

/* A word of the stack; 0 where there is none. */
static inline uint64_t hot_word(const struct hot *h, uint64_t address)
{
	return hot_on_stack(h, address) ? load64_sig(address) : 0;
}

/* The frame returned: what its caller looks like. True, for the callers' ends. */
static inline bool hot_move(struct hot *h, uint64_t pc, uint64_t sp, uint64_t fp)
{
	h->at = (struct regs){ arch_code(pc), sp, fp };
	h->leaf = false;
	return true;
}

/* false = the stack is deeper than we go. */
static inline bool hot_push(struct hot *h, uint64_t where, int32_t bci, uint8_t kind)
{
	if (h->w->n >= WALK_FRAMES_MAX)
		return false;
	h->w->frames[h->w->n++] = (struct walk_frame){ .where = where, .bci = bci, .kind = kind };
	return true;
}
void hot_push_method_sig(struct hot *h, uint64_t method, int32_t bci, uint8_t kind);
void hot_push_stub_sig(struct hot *h, const struct blob *b);

static inline bool return_is_interpreter(uint64_t pc)
{
	return pc >= vm_sig.interpreter_low && pc < vm_sig.interpreter_high;
}

/* ---- calls_*_sig.c: what the instructions say that end at a return address ------------------- */

/* Is there a call right before @pc? */
bool call_before_sig(uint64_t pc);
/* Where it leads if its target is in the instruction; 0 = another kind of call. */
uint64_t call_target_sig(uint64_t pc);
/* The same for calls that load a constant first, too. */
uint64_t call_far_target_sig(uint64_t pc);
/* May a frame that was deoptimised return to @pc, which belongs to the handler at @handler? */
bool call_is_deopt_sig(uint64_t pc, uint64_t handler);

/* ---- returns_sig.c: may this word be a return address? --------------------------------------- */

enum return_score {
	RETURN_INVALID,
	RETURN_ELSEWHERE, /* after a call, but the call leads somewhere else */
	RETURN_PLAUSIBLE,
	RETURN_CALLS_US, /* the call before it leads to this very nmethod */
};

/* In known code and after a call. @fp, @sp: what the caller's frame would be; the interpreter's
 * return addresses follow no call, so its frame must show a Method. */
bool return_fits_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp);
/* The same where the caller's frame is not known yet. */
bool return_known_sig(const struct hot *h, uint64_t pc);
bool return_known_java_sig(const struct hot *h, uint64_t pc);
/* As return_fits_sig(), and in the code cache. */
bool return_fits_java_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp);
/* Leaves the frame that fp points to, if that lies at most so many bytes up and is one. */
bool return_by_fp_sig(struct hot *h, uint64_t distance_max, bool java_only);
/* A pc that follows no call, but for which the nmethod has debug information: an exception's. */
bool return_is_throw_sig(uint64_t pc);
/* Leaves a safepoint blob that calls the VM by its size. A method that polled as it returned is
 * gone from the stack, and may have been the thread's first: it is shown as about to return. */
bool return_to_returning_sig(struct hot *h, const struct blob *b);
/* The same for other polls: the pc in the return slot follows no call either. */
bool return_to_poll_sig(struct hot *h, const struct blob *b);
enum return_score return_score_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp,
				   const struct blob *callee);
/* Has the nmethod been deoptimised at this frame: its return address now leads to a handler? */
bool return_is_deopt_sig(const struct blob *b, uint64_t pc);

/* ---- interpreter_sig.c, interpreter_prologue_*_sig.c
 * --------------------------------------------- */

/* The interrupted instruction is in the interpreter, where a frame is being built or torn down.
 * false = an ordinary frame: interpreter_frame_sig(). */
bool interpreter_prologue_sig(struct hot *h);
bool interpreter_frame_sig(struct hot *h);
/* Is a frame that was returned to, or made by deoptimisation, about to go on there? */
bool interpreter_resumes_sig(uint64_t pc);

/* ---- compiled_sig.c, compiled_prologue_*_sig.c
 * --------------------------------------------------- */

/* The interrupted instruction builds the frame or tears it down: false = it does not. */
bool compiled_prologue_sig(struct hot *h, const struct blob *b);
/* The interrupted instruction is in a stub behind the method, by which it calls an interpreted one:
 * back to the call. */
bool compiled_call_stub_sig(struct hot *h, const struct blob *b);
/* Words that code at @pc is about to pop: they are on top of the frame. */
uint64_t compiled_pops_sig(uint64_t pc);

bool compiled_frame_sig(struct hot *h, const struct blob *b);
/* The pc a deoptimised frame had before, if @pc is a deopt handler's; else @pc. */
uint64_t compiled_real_pc_sig(const struct blob *b, uint64_t pc, uint64_t sp);
/* A frame met lately: names and caller out of the memo. */
bool compiled_memo_sig(struct hot *h);

/* ---- emulate_stub_*_sig.c ------------------------------------------------------------------- */

/* Leaves the stub @b by what its instructions will do, if they lead to a frame that can be. */
bool emulate_stub_sig(struct hot *h, const struct blob *b);
/* The same in the interpreter, for entries of intrinsics: they build no frame, and the barriers of
 * some collectors push all registers there. */
bool emulate_interpreter_sig(struct hot *h);
/* Leaves code that has no frame and ends by a jump to a method: its caller's pc is on top then. */
bool emulate_dispatch_sig(struct hot *h);
/* Bytes that the compiled code at @h->at gives back to the stack before its next jump, in @b. */
uint64_t emulate_pushed_sig(const struct hot *h, const struct blob *b);
/* Leaves the safepoint blob, entered by the @poll of the nmethod @polled. */
bool emulate_safepoint_sig(struct hot *h, uint64_t poll, const struct blob *polled);

/* ---- stubs of the JVM --------------------------------------------------------------------- */

bool blob_frame_sig(struct hot *h, const struct blob *b);

/* ---- deopt_sig.c ------------------------------------------------------------------------------
 */

/* at is in a blob that makes interpreted frames out of a compiled one: pushes those out of the
 * JVM's list, on to their caller. false = they are not made at the moment. */
bool deopt_frames_sig(struct hot *h);

/* ---- frozen_sig.c -----------------------------------------------------------------------------
 */

/* at is the return barrier: pushes the frames that are still frozen and ends the walk. Or the stub
 * that brings frames back, when it has made room for them and not called the JVM yet: what lies in
 * that room is old, and all that counts is frozen. */
bool continuation_cross_sig(struct hot *h);
/* at is the frame of enterSpecial: where does the JavaThread remember it? */
void continuation_learn_sig(const struct hot *h);

#if defined(__aarch64__)
/* compiled_prologue_aarch64_sig.c: as compiled_prologue_sig(), for runtime stubs that C2 has made.
 */
bool compiled_stub_prologue_sig(struct hot *h, const struct blob *b);

/* emulate_stub_aarch64_sig.c: what the interrupted stub's caller looks like. @link_known: x30 may
 * still be the caller's. false = not to be told. */
bool emulate_return_sig(const struct hot *h, bool link_known, struct regs *ret);
#endif
