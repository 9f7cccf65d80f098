/* The state of one walk, and the functions for each kind of frame. Handler code only. Functions
 * that move to the caller return false if they have not found it. */
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
	struct regs at; /* pc, sp and fp of the current frame */
	uint64_t low, high; /* bounds of the stack; low includes the red zone below the interrupted
			     * sp */
	uint64_t thread; /* JavaThread*, 0 = not a Java thread */
	struct machine regs; /* registers at the interrupted instruction */
	uint64_t context; /* address of the ucontext_t with all registers */
	uint64_t link; /* return address of the interrupted code if it is in a register; 0 = it is
			* on the stack */
	bool leaf; /* at.pc is the interrupted instruction, not a return address */
	bool exact; /* the nmethod has debug information at exactly this pc */
	bool behind; /* the nmethod has no debug information at this pc or behind it: this is the
		      * code of a GC barrier */
	bool java_seen;
	walk_enough_fn *enough; /* NULL = the whole stack */
	/* while the thread freezes its frames: the pc to which doYield will return, and the number
	 * of frames pushed before that caller; 0 = it does not */
	uint64_t yield_pc;
	uint32_t yield_n;
	const char *broken; /* why the walk cannot continue; NULL = it can */
};

static inline bool hot_on_stack(const struct hot *h, uint64_t address)
{
	return address >= h->low && address < h->high && address % 8 == 0;
}

/* A word of the stack; 0 = @address is not on it. */
static inline uint64_t hot_word(const struct hot *h, uint64_t address)
{
	return hot_on_stack(h, address) ? load64_sig(address) : 0;
}

/* Moves to the caller, whose registers these are. Returns true, so that it can end a condition. */
static inline bool hot_move(struct hot *h, uint64_t pc, uint64_t sp, uint64_t fp)
{
	h->at = (struct regs){ arch_code(pc), sp, fp };
	h->leaf = false;
	return true;
}

/* Appends a frame to the result; false = the stack is deeper than WALK_FRAMES_MAX. */
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

/* ---- calls_*_sig.c: the instructions that end at a return address ------------------- */

/* Does a call end at @pc? */
bool call_before_sig(uint64_t pc);
/* The target of that call if the instruction contains it; 0 = another kind of call. */
uint64_t call_target_sig(uint64_t pc);
/* The same, also for a call through a register that the instructions before it load with a
 * constant. */
uint64_t call_far_target_sig(uint64_t pc);
/* May a deoptimised frame return to @pc, in the deopt handler at @handler? */
bool call_is_deopt_sig(uint64_t pc, uint64_t handler);

/* ---- returns_sig.c: may this word be a return address? --------------------------------------- */

enum return_score {
	RETURN_INVALID,
	RETURN_ELSEWHERE, /* a call ends there, but leads somewhere else */
	RETURN_PLAUSIBLE,
	RETURN_CALLS_US, /* the call that ends there leads to this nmethod */
};

/* Is @pc in known code and does a call end there? @fp, @sp: of the caller's frame. The
 * interpreter's return addresses do not follow calls, so an interpreted frame must hold a Method
 * instead. */
bool return_fits_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp);
/* The same while the caller's frame is not known yet. */
bool return_known_sig(const struct hot *h, uint64_t pc);
bool return_known_java_sig(const struct hot *h, uint64_t pc);
/* The same as return_fits_sig(), for @pc in the code cache only. */
bool return_fits_java_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp);
/* Moves to the caller by the frame that fp points to, if that is plausible and at most
 * @distance_max bytes above sp. */
bool return_by_fp_sig(struct hot *h, uint64_t distance_max, bool java_only);
/* Can @pc be the address at which an exception was thrown, because the nmethod has debug
 * information for it? It need not follow a call. */
bool return_is_throw_sig(uint64_t pc);
/* Moves from the deoptimisation blob, entered with an exception, to the code that threw it. */
bool return_to_thrower_by_fp_sig(struct hot *h);
/* Moves from a safepoint blob, which is calling the VM, to a method that polled before its return,
 * by the blob's frame size. That method has no frame any more; the walk shows it as about to
 * return. */
bool return_to_returning_sig(struct hot *h, const struct blob *b);
/* The same for other polls, where the blob's return slot holds the poll's pc, which does not follow
 * a call. */
bool return_to_poll_sig(struct hot *h, const struct blob *b);
enum return_score return_score_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp,
				   const struct blob *callee);
/* Is @pc a deopt handler of the nmethod? A frame that returns there is deoptimised. */
bool return_is_deopt_sig(const struct blob *b, uint64_t pc);

/* ---- interpreter_sig.c, interpreter_prologue_*_sig.c ----------------------------------------- */

/* Moves to the caller if the interrupted instruction builds or removes an interpreted frame. false
 * = it is a complete frame, for interpreter_frame_sig(). */
bool interpreter_prologue_sig(struct hot *h);
bool interpreter_frame_sig(struct hot *h);
/* Is @pc code at which the interpreter resumes a frame after a call or a deoptimisation? */
bool interpreter_resumes_sig(uint64_t pc);

/* ---- compiled_sig.c, compiled_prologue_*_sig.c ----------------------------------------------- */

/* Moves to the caller if the interrupted instruction builds or removes the frame; false = it does
 * not. */
bool compiled_prologue_sig(struct hot *h, const struct blob *b);
/* Moves to the call if the interrupted instruction is in a stub behind the method's code, through
 * which the method calls an interpreted one. */
bool compiled_call_stub_sig(struct hot *h, const struct blob *b);
/* Number of words that the code at @pc is about to pop: they are on the stack in addition to the
 * frame. */
uint64_t compiled_pops_sig(uint64_t pc);

bool compiled_frame_sig(struct hot *h, const struct blob *b);
/* The original pc of a deoptimised frame, if @pc is that of a deopt handler; else @pc. @sp: of the
 * frame. */
uint64_t compiled_real_pc_sig(const struct blob *b, uint64_t pc, uint64_t sp);
/* If the memo (scopes.h) has an entry for this frame, pushes its methods and moves to its
 * caller. */
bool compiled_memo_sig(struct hot *h);

/* ---- emulate_stub_*_sig.c -------------------------------------------------------------------- */

/* Moves to the caller of the stub @b by emulating its instructions, if they lead to a plausible
 * frame. */
bool emulate_stub_sig(struct hot *h, const struct blob *b);
/* The same for entries of intrinsics in the interpreter: they build no frame, and GC barriers of
 * some collectors push all registers there. */
bool emulate_interpreter_sig(struct hot *h);
/* Moves to the caller of code that has no frame and ends with a jump to a method; the return
 * address is then on top of the stack. */
bool emulate_dispatch_sig(struct hot *h);
/* Bytes that the compiled code at h->at will pop before its next jump, if that leads into @b; 0 =
 * none, or not known. */
uint64_t emulate_pushed_sig(const struct hot *h, const struct blob *b);
/* Moves to the caller of the safepoint blob that the @poll of the nmethod @polled has entered. */
bool emulate_safepoint_sig(struct hot *h, uint64_t poll, const struct blob *polled);

/* ---- stubs of the JVM ------------------------------------------------------------------------ */

bool blob_frame_sig(struct hot *h, const struct blob *b);

/* ---- deopt_sig.c ----------------------------------------------------------------------------- */

/* h->at is in a blob that replaces a compiled frame by interpreted ones: pushes the frames that the
 * JVM has recorded, and moves to their caller. false = no frame is being replaced now. */
bool deopt_frames_sig(struct hot *h);

/* ---- frozen_sig.c ---------------------------------------------------------------------------- */

/* h->at is the return barrier: pushes the frames that are still frozen. Always returns false,
 * because the walk is complete. h->at may also be in the stub that thaws frames, after it has
 * reserved space for them and before it calls the JVM: that space holds old words, so only the
 * frames in chunks are used. */
bool continuation_cross_sig(struct hot *h);
/* h->at is the frame of enterSpecial: finds the field in which a JavaThread stores its address. */
void continuation_learn_sig(const struct hot *h);

#if defined(__aarch64__)
/* compiled_prologue_aarch64_sig.c: compiled_prologue_sig() for runtime stubs that C2 has
 * generated. */
bool compiled_stub_prologue_sig(struct hot *h, const struct blob *b);

/* emulate_stub_aarch64_sig.c: the registers of the interrupted stub's caller. @link_known: x30 may
 * still hold the return address. false = not known. */
bool emulate_return_sig(const struct hot *h, bool link_known, struct regs *ret);
#endif
