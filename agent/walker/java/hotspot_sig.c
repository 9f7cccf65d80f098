/* See hotspot.h: the loop over all kinds of frames. */
#include "agent/walker/java/hotspot.h"

#include <signal.h>
#include "agent/hotspot/continuation.h"
#include "agent/hotspot/java_thread.h"
#include "agent/walker/java/hotspot_priv.h"

#define STACK_MAX (1ull << 20) /* bytes that are walked if the end of the stack is unknown */

void hot_push_method_sig(struct hot *h, uint64_t method, int32_t bci, uint8_t kind)
{
	const struct method_copy *copy = method_copy_sig(method);
	bool pushed = copy ? hot_push(h, (uint64_t)(uintptr_t)copy, bci, kind)
			   : hot_push(h, (uint64_t)(uintptr_t) "[unknown]", -1, WIRE_KIND_UNKNOWN);

	if (!pushed)
		h->broken = "too_deep";
}

void hot_push_stub_sig(struct hot *h, const struct blob *b)
{
	uint64_t pc = h->at.pc - !h->leaf; /* the return address of a routine's last call may be in
					    * the next routine */

	if (!hot_push(h, (uint64_t)(uintptr_t)code_label_sig(b, pc), -1, WIRE_KIND_STUB))
		h->broken = "too_deep";
}

/* ---- where Java was left ---- */

struct anchor {
	uint64_t sp, pc, fp;
};

/* Reads a JavaFrameAnchor: the last Java frame before the thread entered native code or the VM. */
static bool read_anchor(const struct hot *h, uint64_t address, struct anchor *a)
{
	a->sp = load64_sig(address + (uint32_t)vm_sig.anchor_sp);
	a->pc = load64_sig(address + (uint32_t)vm_sig.anchor_pc);
	a->fp = load64_sig(address + (uint32_t)vm_sig.anchor_fp);
	if (!a->sp || !hot_on_stack(h, a->sp))
		return false;
	if (!a->pc)
		a->pc = hot_word(h, a->sp - 8);
	a->pc = arch_code(a->pc);
	return code_cache_has(a->pc);
}

/* h->at was interrupted by a signal: the one of this walk, or one whose handler the walk has
 * passed. Takes all its registers. */
static void take_registers(struct hot *h, uint64_t context)
{
	h->context = context;
	h->regs = machine_load(context);
	h->link = regs_link_at(context, load64_sig);
	h->leaf = true;
}

static enum unwind_end native_frames(struct hot *h)
{
	struct unwind_stack stack;
	struct regs regs = h->at;
	uint32_t max = h->w->n + NATIVE_FRAMES_MAX;
	enum unwind_end end;

	unwind_stack_init_sig(&stack, h->at.sp);
	stack.link = h->leaf ? h->link : 0;
	end = unwind_native_sig(&stack, &regs, h->w->frames, &h->w->n, h->leaf,
				max < WALK_FRAMES_MAX ? max : WALK_FRAMES_MAX);
	if (end == UNWIND_JAVA)
		hot_move(h, regs.pc, regs.sp, regs.fp);
	if (end == UNWIND_JAVA && stack.context)
		take_registers(h, stack.context);
	return end;
}

/* Moves from native code to the Java code that called it. */
static bool unwind_to_native(struct hot *h)
{
	static const char *const causes[] = {
		[UNWIND_BROKEN] = "native_caller",
		[UNWIND_ROOT] = NULL,
		[UNWIND_TOO_DEEP] = "too_deep",
	};
	enum unwind_end end = native_frames(h);
	struct anchor a;

	if (end == UNWIND_JAVA)
		return true;
	/* the thread's first function is reached, or unwind rows are missing: the anchor shows
	 * whether the thread came from Java */
	if (end != UNWIND_TOO_DEEP && h->thread &&
	    read_anchor(h, h->thread + (uint32_t)vm_sig.thread_anchor, &a) && a.sp >= h->at.sp) {
		hot_move(h, a.pc, a.sp, a.fp);
		return true;
	}
	h->broken = causes[end];
	return false;
}

/* The frame of the call stub, by which the VM calls Java. Its JavaCallWrapper holds the anchor of
 * the previous Java frame; if that is empty, this is the thread's first call of Java. false = the
 * walk is complete. */
static bool unwind_call_stub(struct hot *h)
{
	uint64_t wrapper = hot_word(h, h->at.fp + 8 * (int64_t)vm_sig.wrapper_words);
	uint32_t n = h->w->n;
	struct anchor a;

	if (h->at.fp < h->at.sp || !hot_on_stack(h, wrapper)) {
		h->broken = "call_stub";
		return false;
	}
	wrapper += (uint32_t)vm_sig.wrapper_anchor;
	if (!load64_sig(wrapper + (uint32_t)vm_sig.anchor_sp))
		return false; /* the root */
	if (!read_anchor(h, wrapper, &a)) {
		h->broken = "call_stub_anchor";
		return false;
	}
	/* the native frames between the two are pushed only if they lead to the same Java frame */
	hot_move(h, hot_word(h, h->at.fp + 8), h->at.fp + 16, hot_word(h, h->at.fp));
	if (native_frames(h) != UNWIND_JAVA || h->at.sp != a.sp) {
		h->w->n = n;
		hot_move(h, a.pc, a.sp, a.fp);
	}
	return true;
}

/* ---- the walk ---- */

/* Has the interpreter removed the frame of a method that the VM called, and that ends by an
 * exception? The fp is the call stub's then, whose frame resembles an interpreted one; but only the
 * call stub returns to native code. */
static bool is_fp_of_call_stub(const struct hot *h)
{
	uint64_t fp = h->at.fp, pc = arch_code(hot_word(h, fp + 8));

	return hot_on_stack(h, fp) && fp >= h->at.sp && !code_cache_has(pc) &&
	       unwind_is_code_sig(pc);
}

static bool hotspot_interpreted(struct hot *h)
{
	if (h->leaf && interpreter_resumes_sig(h->at.pc))
		h->leaf = false; /* the registers still hold the callee's values and might be
				  * mistaken for those of an entry */
	if (h->leaf && interpreter_prologue_sig(h)) {
		h->java_seen = true;
		return true;
	}
	if (is_fp_of_call_stub(h))
		return unwind_call_stub(h);
	if (!interpreter_frame_sig(h)) {
		if (emulate_interpreter_sig(h))
			return true;
		h->broken = "interpreted_caller";
	} else if (!return_known_sig(h, h->at.pc)) {
		h->broken = "interpreted_caller";
	}
	if (h->broken)
		return false;
	h->java_seen = true;
	return true;
}

/* A frame in the code cache. */
static bool hotspot_generated(struct hot *h)
{
	struct blob b;

	if (h->at.pc == vm_sig.call_stub_return && !h->leaf)
		return unwind_call_stub(h);
	if (!h->leaf && continuation_is_barrier_sig(h->at.pc))
		return continuation_cross_sig(h);
	if (compiled_memo_sig(h))
		return true;
	if (!code_blob_sig(h->at.pc, &b)) {
		h->broken = "no_code_blob";
		return false;
	}
	if (b.kind == BLOB_INTERPRETER)
		return hotspot_interpreted(h);
	return code_is_nmethod(&b) ? compiled_frame_sig(h, &b) : blob_frame_sig(h, &b);
}

/* Continues at the thread's anchor after a frame whose caller was not found. Once a Java frame was
 * pushed, the anchor may describe another part of the stack. */
static bool hotspot_recover(struct hot *h)
{
	struct anchor a;

	if (!h->broken || h->java_seen || !h->thread ||
	    !read_anchor(h, h->thread + (uint32_t)vm_sig.thread_anchor, &a) || a.sp < h->at.sp)
		return false;
	h->broken = NULL;
	hot_move(h, a.pc, a.sp, a.fp);
	return true;
}

static void hotspot_walk(struct hot *h)
{
	bool recovered = false;

	for (uint64_t sp = h->at.sp;; sp = h->at.sp) {
		bool leaf = h->leaf, moved;

		moved = code_cache_has(h->at.pc) ? hotspot_generated(h) : unwind_to_native(h);
		if (!moved && h->broken && !recovered) {
			recovered = true;
			moved = hotspot_recover(h);
		}
		if (!moved || h->broken)
			return;
		/* each step must raise sp, so that the walk ends */
		if (!hot_on_stack(h, h->at.sp) || h->at.sp < sp ||
		    (h->at.sp == sp && !leaf && !h->leaf)) {
			h->broken = "outside_stack";
			return;
		}
		if (h->enough && h->enough(h->w, h->at.sp))
			return;
	}
}

static void find_stack(struct hot *h)
{
	uint64_t base = h->thread ? load64_sig(h->thread + (uint32_t)vm_sig.thread_stack_base) : 0;

	h->low = h->at.sp - ARCH_RED_ZONE;
	/* native code may run on another stack far below, such as Go's in its heap; the Java frames
	 * are on the thread's own stack, to which the anchor leads */
	h->high = base > h->at.sp ? base : h->at.sp + STACK_MAX;
}

void hotspot_walk_sig(struct walk *w, void *ucontext)
{
	const ucontext_t *uc = ucontext;
	struct hot h = { .w = w, .at = regs_get(uc) };

	if (!guard_begin_sig(&uc->uc_sigmask)) {
		w->broken = "signals_blocked";
		return;
	}
	take_registers(&h, (uint64_t)(uintptr_t)uc);
	h.thread = java_thread_address_sig();
	find_stack(&h);
	hotspot_walk(&h);
	w->broken = h.broken;
}

/* Unlike an interrupted pc, the anchor's pc is the return address of a call, recorded by the thread
 * itself. */
void hotspot_walk_anchor_sig(struct walk *w, uint64_t thread, walk_enough_fn *enough)
{
	static const sigset_t nothing_blocked;
	uint64_t own = java_thread_address_sig();
	struct hot h = { .w = w, .thread = thread ? thread : own, .enough = enough };
	struct anchor a;
	struct blob b;

	(void)guard_begin_sig(&nothing_blocked);
	h.high = load64_sig(h.thread + (uint32_t)vm_sig.thread_stack_base);
	h.low = h.thread == own
			? (uint64_t)(uintptr_t)__builtin_frame_address(0)
			: h.high - load64_sig(h.thread + (uint32_t)vm_sig.thread_stack_size);
	if (!h.thread || !read_anchor(&h, h.thread + (uint32_t)vm_sig.thread_anchor, &a)) {
		w->broken = "no_java_frame";
		return;
	}
	hot_move(&h, a.pc, a.sp, a.fp);
	/* a virtual thread resumes, and all of its frames are still in chunks */
	if (code_places_sig.enter_special && code_blob_sig(a.pc, &b) &&
	    b.base == code_places_sig.enter_special)
		(void)continuation_cross_sig(&h);
	else
		hotspot_walk(&h);
	w->broken = h.broken;
}
