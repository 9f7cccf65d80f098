/*
 * Frames that are being deoptimised. While the JVM replaces a compiled frame by interpreted ones
 * (deoptimization.cpp), the new frames are skeletons, whose slots hold old contents of the stack,
 * such as stale Methods. The JVM has recorded the frames that it will build and their caller in a
 * vframeArray, to which the JavaThread points until the last frame is complete.
 */
#include "agent/walker/java/hotspot_priv.h"

#define FRAMES_MAX 1024 /* methods inlined in one compiled frame */

/* The C++ class frame begins with sp and pc. It ends with fp and the sp from before the callee
 * extended the frame; on arm64 a flag may follow. */
static bool read_frame(const struct hot *h, uint64_t frame, struct regs *ret)
{
	uint32_t last = vm_sig.frame_bytes - 8;

	if (!hot_on_stack(h, load64_sig(frame + last)))
		last -= 8;
	*ret = (struct regs){ arch_code(load64_sig(frame + 8)), load64_sig(frame),
			      load64_sig(frame + last - 8) };
	return hot_on_stack(h, ret->sp) && ret->sp >= h->at.sp && return_known_java_sig(h, ret->pc);
}

static uint64_t element_at(uint64_t array, uint32_t i)
{
	return array + vm_sig.unpacked_first + (uint64_t)vm_sig.unpacked_stride * i;
}

bool deopt_frames_sig(struct hot *h)
{
	uint64_t array = h->thread ? load64_sig(h->thread + (uint32_t)vm_sig.thread_unpacked) : 0;
	uint32_t n = array ? load32_sig(array + (uint32_t)vm_sig.unpacked_count) : 0;
	struct regs caller;
	struct blob b;

	if (n == 0 || n > FRAMES_MAX ||
	    !read_frame(h, array + (uint32_t)vm_sig.unpacked_caller, &caller))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!method_check_sig(
			    load64_sig(element_at(array, i) + (uint32_t)vm_sig.unpacked_method)))
			return false;
	for (uint32_t i = 0; i < n; i++) { /* the innermost first */
		uint64_t e = element_at(array, i);
		int32_t bci = (int32_t)load32_sig(e + (uint32_t)vm_sig.unpacked_bci);

		hot_push_method_sig(h, load64_sig(e + (uint32_t)vm_sig.unpacked_method),
				    bci < 0 ? 0 : bci, WIRE_KIND_INTERPRETED);
	}
	h->java_seen = true;
	hot_move(h, caller.pc, caller.sp, caller.fp);
	/* the caller is the end of a virtual thread's stack: its other frames are in chunks */
	if (code_places_sig.enter_special && code_blob_sig(caller.pc, &b) &&
	    b.base == code_places_sig.enter_special)
		return continuation_cross_sig(h);
	return true;
}
