/*
 * The walk with AsyncGetCallTrace. unwind.h supplies the native frames, AsyncGetCallTrace the Java
 * frames. AsyncGetCallTrace fails in stubs, in prologues and epilogues and at method entries of the
 * interpreter, because it expects a complete top frame. In these cases it is called again with the
 * registers as they would be after the top frame's return, and a label takes the place of that
 * frame.
 */
#include "agent/walker/asgct/asgct.h"

#include <stddef.h>
#include "agent/base/guard.h"
#include "agent/hotspot/code_cache.h"
#include "agent/hotspot/java_thread.h"
#include "agent/walker/asgct/asgct_priv.h"
#include "agent/walker/asgct/stubs.h"
#include "agent/walker/native/unwind.h"

#define POPPED_WORDS 8
#define PUSHED_WORDS 2
#define BCI_NATIVE   -3

/* forte.cpp: an interface without a header since JDK 5 */
struct asgct_frame {
	int32_t bci;
	jmethodID method;
};
struct asgct_trace {
	JNIEnv *env;
	int32_t n; /* <= 0: the reason why there are none */
	struct asgct_frame *frames;
};
_Static_assert(sizeof(struct asgct_frame) == sizeof(struct walk_frame), "converted in place");

asgct_fn *walk_asgct;

static const char *const causes[] = {
	"asgct_no_java_frame", /* 0 */
	"asgct_no_class_load", /* -1 ClassLoad is not on */
	"asgct_gc_active", /* -2 */
	"asgct_unknown_not_java", /* -3 */
	"asgct_not_walkable_not_java", /* -4 */
	"asgct_unknown_java", /* -5 */
	"asgct_not_walkable_java", /* -6 */
	"asgct_unknown_state", /* -7 */
	"asgct_thread_exit", /* -8 */
	"asgct_deopt", /* -9 */
	"asgct_safepoint", /* -10 */
};

static const char *cause_of(int32_t n)
{
	return n <= 0 && n > -(int32_t)(sizeof(causes) / sizeof(causes[0])) ? causes[-n]
									    : "asgct_unknown";
}

/* Appends the frames that AsyncGetCallTrace finds. Returns their number, or its error (<= 0), and
 * then @w is unchanged. */
static int32_t java_frames_sig(struct walk *w, JNIEnv *env, ucontext_t *uc)
{
	int32_t room = (int32_t)(WALK_FRAMES_MAX - w->n);
	struct walk_frame *to = w->frames + w->n;
	struct asgct_trace trace = { .env = env, .frames = (struct asgct_frame *)to };

	if (room <= 0)
		return 0;
	walk_asgct(&trace, room, uc);
	for (int32_t i = 0; i < trace.n; i++) {
		struct asgct_frame f;

		__builtin_memcpy(&f, &to[i], sizeof(f));
		to[i] = (struct walk_frame){
			.where = (uint64_t)(uintptr_t)f.method,
			.bci = f.bci < 0 ? -1 : f.bci,
			.kind = f.bci == BCI_NATIVE ? WIRE_KIND_NATIVE_METHOD : WIRE_KIND_JAVA,
		};
	}
	if (trace.n > 0)
		w->n += (uint32_t)trace.n;
	if (trace.n == room)
		w->broken = "too_deep"; /* frames at the root are missing */
	return trace.n;
}

/* The same with other registers than those of the context, which is restored afterwards. */
static int32_t java_frames_at_sig(struct walk *w, JNIEnv *env, ucontext_t *uc, struct regs regs)
{
	struct regs saved = regs_get(uc);
	int32_t n;

	if (!code_cache_has(regs.pc))
		return -5;
	regs_set(uc, regs);
	n = java_frames_sig(w, env, uc);
	regs_set(uc, saved);
	return n;
}

/* Tries the words that may be the top frame's return address, the most likely first, as the pc of
 * its caller. */
static int32_t popped_frames_sig(struct walk *w, JNIEnv *env, ucontext_t *uc,
				 struct unwind_stack *stack, struct regs top)
{
	uint64_t pc, fp, link = regs_link(uc);
	int32_t n = -5;

	if (link)
		n = java_frames_at_sig(w, env, uc, (struct regs){ link, top.sp, top.fp });
	if (n <= 0 && unwind_load_sig(stack, top.sp, &pc))
		n = java_frames_at_sig(w, env, uc, (struct regs){ pc, top.sp + 8, top.fp });
	if (n <= 0 && top.fp >= top.sp && unwind_load_sig(stack, top.fp, &fp) &&
	    unwind_load_sig(stack, top.fp + 8, &pc))
		n = java_frames_at_sig(w, env, uc, (struct regs){ pc, top.fp + 16, fp });
	for (uint64_t i = 1; n <= 0 && i < POPPED_WORDS; i++)
		if (unwind_load_sig(stack, top.sp + 8 * i, &pc))
			n = java_frames_at_sig(w, env, uc,
					       (struct regs){ pc, top.sp + 8 * (i + 1), top.fp });
	return n;
}

/* @regs: of the top Java frame. Tries these first, then registers as they would be if the frame had
 * returned. */
static int32_t recover_sig(struct walk *w, JNIEnv *env, ucontext_t *uc, struct unwind_stack *stack,
			   struct regs regs)
{
	const char *label = stubs_find_sig(regs.pc);
	uint64_t word;
	int32_t first, n;

	first = java_frames_at_sig(w, env, uc, regs);
	/* compiled code may have pushed words inside its frame: C1's slow_subtype_check pushes two,
	 * string intrinsics one. At a method's entry, where [sp] holds a code address, that cannot
	 * be */
	for (uint64_t i = 1; first <= 0 && i <= PUSHED_WORDS; i++) {
		struct regs moved = { regs.pc, regs.sp + 8 * i, regs.fp };

		if (label || (unwind_load_sig(stack, regs.sp, &word) && code_cache_has(word)))
			break;
		n = java_frames_at_sig(w, env, uc, moved);
		if (n > 0)
			return n;
	}
	if (first > 0 || w->n + 1 >= WALK_FRAMES_MAX)
		return first;
	w->frames[w->n++] = (struct walk_frame){
		.where = (uint64_t)(uintptr_t)(label ? label : "[method entry]"),
		.bci = -1,
		.kind = WIRE_KIND_STUB,
	};
	n = popped_frames_sig(w, env, uc, stack, regs);
	return n > 0 ? n : first;
}

static const char *const native_causes[] = {
	[UNWIND_BROKEN] = "native_root_not_reached",
	[UNWIND_JAVA] = "java_in_foreign_thread",
	[UNWIND_TOO_DEEP] = "too_deep",
	[UNWIND_ROOT] = NULL,
};

void asgct_walk_sig(struct walk *w, void *ucontext)
{
	ucontext_t *uc = ucontext;
	JNIEnv *env = java_thread_env_sig();
	struct regs top = regs_get(uc);
	enum unwind_end end = UNWIND_JAVA;
	struct unwind_stack stack;
	int32_t n;

	unwind_stack_init_sig(&stack, top.sp);
	if (!code_cache_has(top.pc)) {
		end = unwind_native_sig(&stack, &top, w->frames, &w->n, true, NATIVE_FRAMES_MAX);
		if (env && end != UNWIND_ROOT) {
			/* the thread has left Java by a call, so the JVM has recorded its last Java
			 * frame */
			n = java_frames_sig(w, env, uc);
			if (n > 0)
				return;
			if (end != UNWIND_JAVA) {
				w->broken = n ? cause_of(n) : native_causes[end];
				return;
			}
		}
	}
	if (end != UNWIND_JAVA || !env) {
		w->broken = native_causes[end];
		return;
	}
	n = recover_sig(w, env, uc, &stack, top);
	if (n <= 0)
		w->broken = cause_of(n);
}
