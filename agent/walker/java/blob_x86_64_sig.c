/*
 * x86-64: finds the caller of code that is not a method: adapters, vtable stubs, intrinsics,
 * runtime stubs, the blobs for safepoints and deoptimisation. Few of them have a frame of known
 * size all the time, so several words that may be the return address are tried, the most certain
 * first.
 */
#include "agent/hotspot/continuation.h"
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/native/instruction.h"

#define STUB_WORDS	256 /* an intrinsic saves registers and has local arrays */
#define RUNTIME_WORDS	40
#define FP_DISTANCE_MAX 0x2000
#define NEAR_WORDS	8
#define ALIGN_WORDS	3
#define CALL_STUB_BYTES 256 /* before and behind its call */
#define CPU_STATE_WORDS 512 /* with the vector registers */
#define RAX_ABOVE_R13	13 /* words; the order is that of pusha */
#define SAFEPOINT_ENTER 5 /* bytes: push rbx; push rbp; mov rbp, rsp */
#define ADAPTER_STEPS	5 /* instructions from the pop of the return address to its store */

/* ---- by the call that led here --------------------------------------------------------------- */

/* Moves to the caller by the lowest word on the stack that is the return address of an nmethod's
 * call into this blob. */
static bool unwind_by_call(struct hot *h, const struct blob *b, uint64_t words)
{
	for (uint64_t at = h->at.sp; at < h->at.sp + 8 * words && hot_on_stack(h, at); at += 8) {
		uint64_t pc = hot_word(h, at), target, fp;
		struct blob caller;

		if (!code_cache_has(pc))
			continue;
		target = call_far_target_sig(pc);
		if (target < b->base || target >= b->end || !code_blob_sig(pc, &caller) ||
		    !code_is_nmethod(&caller))
			continue;
		fp = hot_word(h, at - 8);
		return hot_move(h, pc, at + 8, hot_on_stack(h, fp) && fp > at ? fp : h->at.fp);
	}
	return false;
}

/* ---- by where a frame would end ---- */

static bool blob_return_at(struct hot *h, uint64_t slot, uint64_t fp)
{
	uint64_t pc = hot_word(h, slot);

	return return_fits_sig(h, pc, fp, slot + 8) && hot_move(h, pc, slot + 8, fp);
}

static bool blob_x86_64_unwind_by_size(struct hot *h, const struct blob *b, bool java_only)
{
	uint64_t end = h->at.sp + 8 * (uint64_t)b->frame_words, pc, fp;

	if (b->frame_words <= 0)
		return false;
	pc = hot_word(h, end - 8);
	fp = hot_word(h, end - 16);
	if (!(java_only ? return_fits_java_sig(h, pc, fp, end) : return_fits_sig(h, pc, fp, end)))
		return false;
	return hot_move(h, pc, end, fp);
}

/* Is rbp the frame pointer of an interpreted caller rather than of this stub? */
static bool blob_x86_64_fp_is_interpreted(const struct hot *h)
{
	uint64_t fp = h->at.fp, method, sender_sp;

	if (!hot_on_stack(h, fp) || fp < h->at.sp)
		return false;
	method = hot_word(h, fp + 8 * (int64_t)vm_sig.method_words);
	sender_sp = hot_word(h, fp + 8 * (int64_t)vm_sig.sender_sp_words);
	return method_check_sig(method) && hot_on_stack(h, sender_sp) && sender_sp > fp;
}

/* ---- safepoint and deoptimisation ---- */

/* The safepoint blob was interrupted while it saves registers. Its frame size is no help, because
 * sp still changes, but rbp is set, and the word above the one that it points to is a pc. In the
 * blob for polls before a return, that is the return address of the method that polled; the other
 * blobs begin with push rbx, which makes a slot for the poll's pc. */
static bool unwind_safepoint_by_fp(struct hot *h, const struct blob *b, uint64_t poll,
				   const struct blob *polled)
{
	uint64_t fp = h->at.fp, next = hot_word(h, fp), pc = hot_word(h, fp + 8);
	struct hot returning = *h;

	if (h->at.pc - b->code < SAFEPOINT_ENTER || fp < h->at.sp ||
	    fp >= h->at.sp + 8 * (uint64_t)b->frame_words || !hot_on_stack(h, fp))
		return false;
	if ((load_code_sig(b->code) & 0xff) == (OP_PUSH | GPR_RBX))
		return hot_move(h, poll, fp + 16, next);
	if (!return_fits_sig(h, pc, next, fp + 16))
		return false;
	returning.at = (struct regs){ poll, fp + 8, next };
	if (!compiled_prologue_sig(&returning, polled) || returning.at.sp != fp + 16)
		return hot_move(h, pc, fp + 16, next);
	h->at = (struct regs){ poll, fp + 8, next };
	return true;
}

/* The safepoint blob was entered by a poll, which is not a call. The poll's pc is in the JavaThread
 * until the blob has stored it in its frame. */
static bool blob_x86_64_unwind_safepoint(struct hot *h, const struct blob *b)
{
	uint64_t saved = load64_sig(h->thread + (uint32_t)vm_sig.thread_saved_pc);
	uint64_t end = h->at.sp + 8 * (uint64_t)(b->frame_words > 0 ? b->frame_words : 1);
	struct blob polled;

	if (!code_cache_has(saved) || !code_blob_sig(saved, &polled) || polled.kind != BLOB_NMETHOD)
		return false;
	if (h->at.pc == b->code) { /* nothing is pushed yet: the top frame is still the nmethod's
				    * own */
		h->at.pc = saved;
		h->w->n--;
		return true;
	}
	if (emulate_safepoint_sig(h, saved, &polled) ||
	    unwind_safepoint_by_fp(h, b, saved, &polled))
		return true;
	if (b->frame_words > 0 &&
	    return_fits_sig(h, hot_word(h, end - 8), hot_word(h, end - 16), end))
		return false; /* like any runtime stub */
	if (h->at.pc - b->code >= 16)
		return hot_move(h, saved, end, hot_word(h, end - 16));
	for (uint64_t i = 0; i < 4; i++)
		if (return_fits_sig(h, hot_word(h, h->at.sp + 8 * i),
				    hot_word(h, h->at.sp + 8 * i - 8), h->at.sp))
			return hot_move(h, hot_word(h, h->at.sp + 8 * i), h->at.sp + 8 * i + 8,
					h->at.fp);
	return hot_move(h, saved, h->at.sp + 16, h->at.fp);
}

/* ---- adapters, vtable stubs ---- */

static bool is_room_made(const struct instruction *i)
{
	return instruction_computes(i, ARITHMETIC_SUB, GPR_RSP);
}

/* Is it and rsp, -16; sub rsp, N; or mov r11 or r13, rsp? By these an adapter moves or copies the
 * stack pointer. */
static bool is_adapter_step(const struct instruction *i)
{
	return is_room_made(i) ||
	       (instruction_computes(i, ARITHMETIC_AND, GPR_RSP) && i->immediate == -16) ||
	       instruction_moves(i, GPR_R11, GPR_RSP) || instruction_moves(i, GPR_R13, GPR_RSP);
}

/* The length of such an instruction that ends at @pc; 0 = there is none. */
static uint64_t adapter_step_before(uint64_t pc)
{
	static const uint8_t lengths[] = { 3, 4, 7 };
	struct instruction i;

	for (unsigned k = 0; k < sizeof(lengths); k++)
		if (instruction_before_sig(pc, lengths[k], &i) && is_adapter_step(&i))
			return lengths[k];
	return 0;
}

static bool is_pop_rax_before(uint64_t pc)
{
	return (load_code_sig(pc - 1) & 0xff) == (OP_POP | GPR_RAX);
}

/* mov rax, [rsp] */
static bool is_top_loaded(const struct instruction *i)
{
	return instruction_is(i, OP_MOV_FROM) && i->wide && i->reg == GPR_RAX && i->mod == 0 &&
	       i->base == GPR_RSP;
}

/* Has the adapter loaded its return address into rax before @pc (pop rax; mov rax, [rsp]) and only
 * moved the stack pointer since? Then the word on top is stale until the adapter stores rax
 * there. */
static bool adapter_holds_return(uint64_t pc)
{
	struct instruction before;

	for (uint64_t i = 0, length = 1; i < ADAPTER_STEPS && length; i++, pc -= length) {
		if (is_pop_rax_before(pc) ||
		    (instruction_before_sig(pc, 4, &before) && is_top_loaded(&before)))
			return true;
		length = adapter_step_before(pc);
	}
	return false;
}

/* Moves to the caller by the return address in rax. r13 is the sender's sp, or will be soon. */
static bool unwind_held_adapter(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, pc = h->regs.rax, sender = h->regs.r13;
	bool popped = is_pop_rax_before(h->at.pc);

	if (popped || !hot_on_stack(h, sender) || sender < sp || sender - sp >= 0x1000)
		sender = sp;
	if (hot_word(h, sender) == pc)
		sender += 8;
	return return_fits_sig(h, pc, fp, sp) && hot_move(h, pc, sender, fp);
}

/* Bytes that the instruction before @pc has reserved on the stack, as a GC barrier does for
 * registers; 0 = none. */
static uint64_t adapter_room(uint64_t pc)
{
	struct instruction i;

	if (instruction_before_sig(pc, 7, &i) && is_room_made(&i))
		return (uint64_t)i.immediate;
	return instruction_before_sig(pc, 4, &i) && is_room_made(&i) ? (uint64_t)i.immediate : 0;
}

/* The return address is on top of the stack until the adapter pops it into rax, and saves the
 * sender's sp in r13. The adapter may push it again, below the arguments. */
static bool blob_x86_64_unwind_adapter(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, pc = h->regs.rax, sender = h->regs.r13;
	bool kept = hot_on_stack(h, sender) && sender >= sp && sender - sp < 0x1000;
	uint64_t room = adapter_room(h->at.pc);

	if (adapter_holds_return(h->at.pc) && unwind_held_adapter(h))
		return true;
	if (room && blob_return_at(h, sp + room, fp))
		return true;
	if (!(kept && hot_word(h, sp) == pc) && blob_return_at(h, sp, fp))
		return true;
	return return_fits_sig(h, pc, fp, sp) && hot_move(h, pc, kept ? sender : sp, fp);
}

/* A c2i adapter that calls the VM, to have the call in its caller patched, pushes all registers
 * (push_CPU_state). Among them are r13, which is the sp with which the adapter was entered, and
 * rax, which is the return address. */
static bool unwind_patching_adapter(struct hot *h)
{
	for (uint64_t at = h->at.sp; at < h->at.sp + 8 * CPU_STATE_WORDS; at += 8) {
		uint64_t sp = hot_word(h, at), pc;

		if (sp <= at || !hot_on_stack(h, sp) || sp - at > 8 * CPU_STATE_WORDS)
			continue;
		pc = hot_word(h, sp);
		if (pc == hot_word(h, at + 8 * RAX_ABOVE_R13) &&
		    return_fits_java_sig(h, pc, h->at.fp, sp))
			return hot_move(h, pc, sp + 8, h->at.fp);
	}
	return false;
}

static bool unwind_jump_stub(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp, fp = h->at.fp;

	if (blob_return_at(h, sp, fp))
		return true;
	if (b->kind == BLOB_METHOD_HANDLES && h->leaf && return_fits_sig(h, h->regs.rax, fp, sp))
		return hot_move(h, h->regs.rax, sp, fp);
	return hot_word(h, sp) == fp && return_known_sig(h, hot_word(h, sp + 8)) &&
	       hot_move(h, hot_word(h, sp + 8), sp + 16, fp);
}

/* ---- interrupted stubs ---- */

/* Compiled code has called a stub of StubRoutines, which may have saved rbp. */
static bool unwind_called_stub(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp, fp = h->at.fp;

	if (!unwind_by_call(h, b, b->kind == BLOB_STUBS ? STUB_WORDS : RUNTIME_WORDS))
		return false;
	h->at.fp = fp;
	if (b->kind == BLOB_STUBS && hot_on_stack(h, fp) && fp < h->at.sp && fp >= sp)
		h->at.fp = hot_word(h, fp);
	return true;
}

/* Moves to the caller by the interrupted instruction: ret, jmp rax (a stub has resolved a call and
 * jumps to the method), pop rbp or push rbp. */
static bool blob_unwind_stub_prologue(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, top = hot_word(h, sp);
	struct instruction here;
	bool pushes;

	(void)instruction_at_sig(h->at.pc, &here);
	pushes = instruction_has_reg(&here, OP_PUSH, GPR_RBP);
	if ((instruction_is(&here, OP_RET) || pushes ||
	     instruction_goes_to(&here, GROUP_5_JMP, GPR_RAX)) &&
	    blob_return_at(h, sp, fp))
		return true;
	if (instruction_has_reg(&here, OP_POP, GPR_RBP) &&
	    return_fits_sig(h, hot_word(h, sp + 8), top, sp))
		return hot_move(h, hot_word(h, sp + 8), sp + 16, top);
	return top == fp && !pushes && blob_return_at(h, sp + 8, fp);
}

static bool blob_x86_64_is_call_stub(uint64_t pc)
{
	return pc > vm_sig.call_stub_return - CALL_STUB_BYTES &&
	       pc < vm_sig.call_stub_return + CALL_STUB_BYTES;
}

static bool blob_x86_64_unwind_leaf_stub(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp, fp = h->at.fp;

	if (b->frame_words <= 0 && unwind_called_stub(h, b))
		return true;
	if (b->kind == BLOB_DEOPT && return_to_thrower_by_fp_sig(h))
		return true;
	if (blob_unwind_stub_prologue(h))
		return true;
	if (b->frame_words > 1) {
		uint64_t pc = hot_word(h, fp + 8), next = hot_word(h, fp);

		if (fp >= sp && fp <= sp + 8 * (uint64_t)b->frame_words - 16 &&
		    return_fits_java_sig(h, pc, next, fp + 16))
			return hot_move(h, pc, fp + 16, next);
		if (blob_x86_64_unwind_by_size(h, b, true))
			return true;
	}
	/* the call stub is the only one of these stubs that native code calls. Its frame resembles
	 * an interpreted one, because the Method and the address of the parameters are in the same
	 * slots */
	if (blob_x86_64_is_call_stub(h->at.pc)
		    ? return_by_fp_sig(h, FP_DISTANCE_MAX, false)
		    : !blob_x86_64_fp_is_interpreted(h) &&
			      !unwind_is_code_sig(hot_word(h, fp + 8)) &&
			      return_by_fp_sig(h, FP_DISTANCE_MAX, false))
		return true;
	if (blob_return_at(h, sp, fp))
		return true;
	for (uint64_t i = 1; i <= NEAR_WORDS; i++)
		if (return_fits_java_sig(h, hot_word(h, sp + 8 * i), fp, sp))
			return hot_move(h, hot_word(h, sp + 8 * i), sp + 8 * i + 8, fp);
	return false;
}

/* Exception stubs replace their return address by the pc that threw. */
static bool blob_x86_64_unwind_throw(struct hot *h, const struct blob *b)
{
	uint64_t end = h->at.sp + 8 * (uint64_t)b->frame_words;

	return b->frame_words > 0 && return_is_throw_sig(hot_word(h, end - 8)) &&
	       hot_move(h, hot_word(h, end - 8), end, hot_word(h, end - 16));
}

/* A stub without a frame: the words on top only align the stack for a call, and rbp is the
 * caller's. */
static bool unwind_frameless_blob(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp;

	if (b->frame_words > 0 || (b->kind == BLOB_STUBS && !blob_x86_64_fp_is_interpreted(h)))
		return false;
	for (uint64_t i = 0; i < ALIGN_WORDS; i++)
		if (return_fits_java_sig(h, hot_word(h, sp + 8 * i), h->at.fp, sp))
			return hot_move(h, hot_word(h, sp + 8 * i), sp + 8 * i + 8, h->at.fp);
	return false;
}

/* ---- stubs that made a call ---- */

static bool blob_x86_64_unwind_stub(struct hot *h, const struct blob *b)
{
	if (b->kind == BLOB_SAFEPOINT &&
	    (return_to_returning_sig(h, b) || return_to_poll_sig(h, b)))
		return true;
	if (b->kind == BLOB_ADAPTER && unwind_patching_adapter(h))
		return true;
	if (b->kind == BLOB_DEOPT &&
	    (return_by_fp_sig(h, UINT64_MAX, true) || return_to_thrower_by_fp_sig(h)))
		return true;
	if (blob_x86_64_unwind_by_size(h, b, false))
		return true;
	if (b->kind == BLOB_STUBS && b->frame_words <= 0 && unwind_by_call(h, b, 64))
		return true;
	if ((b->kind == BLOB_RUNTIME || b->kind == BLOB_EXCEPTION) &&
	    blob_x86_64_unwind_throw(h, b))
		return true;
	if (unwind_frameless_blob(h, b))
		return true;
	return return_by_fp_sig(h, UINT64_MAX, false) || blob_return_at(h, h->at.sp, h->at.fp) ||
	       unwind_by_call(h, b, 160);
}

/* Is the caller found more reliably by emulation (emulate.h) than by reading the frame? */
static bool blob_x86_64_is_emulated(const struct hot *h, const struct blob *b)
{
	switch (b->kind) {
	case BLOB_ADAPTER:
		return !h->leaf;
	case BLOB_VTABLE:
	case BLOB_INLINE_CACHE:
	case BLOB_METHOD_HANDLES:
		return false;
	default:
		return h->leaf || b->frame_words <= 0;
	}
}

bool blob_frame_sig(struct hot *h, const struct blob *b)
{
	bool left;

	hot_push_stub_sig(h, b);
	if (h->leaf && continuation_is_barrier_sig(h->at.pc))
		return emulate_stub_sig(h, b) || continuation_cross_sig(h);
	if ((b->kind == BLOB_DEOPT || b->kind == BLOB_UNCOMMON_TRAP) && deopt_frames_sig(h))
		return true;
	if (b->kind == BLOB_SAFEPOINT && h->leaf && h->thread && blob_x86_64_unwind_safepoint(h, b))
		return true;
	if (blob_x86_64_is_emulated(h, b) && emulate_stub_sig(h, b))
		return true;
	if (b->kind == BLOB_ADAPTER && h->leaf)
		left = blob_x86_64_unwind_adapter(h) || emulate_stub_sig(h, b);
	else if ((b->kind == BLOB_VTABLE || b->kind == BLOB_INLINE_CACHE ||
		  b->kind == BLOB_METHOD_HANDLES) &&
		 unwind_jump_stub(h, b))
		left = true;
	else if (h->leaf)
		left = blob_x86_64_unwind_leaf_stub(h, b);
	else
		left = blob_x86_64_unwind_stub(h, b);
	if (!left)
		h->broken = "stub_caller";
	return left;
}
