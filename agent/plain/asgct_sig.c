/*
 * walk_sig() over AsyncGetCallTrace. It refuses where its own reading of the top frame fails: in
 * prologues and epilogues of compiled methods, in stubs without a frame, at calls from the
 * interpreter. Those are retried from where the caller would be; the frame that was skipped is
 * printed as "[stub]".
 */
#include "agent/plain/asgct.h"

static const char *const failures[] = {
	NULL, /* 0: no Java frames */
	"no_class_load", /* -1 */
	"gc_active", /* -2 */
	"unknown_not_java", /* -3 */
	"not_walkable_not_java", /* -4 */
	"unknown_java", /* -5 */
	"not_walkable_java", /* -6 */
	"unknown_state", /* -7 */
	"thread_exit", /* -8 */
	"deopt", /* -9 */
	"safepoint", /* -10 */
};

static JNIEnv *env_of_this_thread_sig(void)
{
	void *env = NULL;

	/* jni_GetEnv reads the thread pointer and nothing else; no Java thread = JNI_EDETACHED */
	if ((*asgct.vm)->GetEnv(asgct.vm, &env, JNI_VERSION_1_6) != JNI_OK)
		return NULL;
	return env;
}

/* Java frames behind what @w has; returns their number or AsyncGetCallTrace's failure. */
static int32_t java_frames_sig(struct walk *w, JNIEnv *env, ucontext_t *uc)
{
	int32_t depth = (int32_t)(WALK_FRAMES_MAX - 1 - w->n);
	struct walk_frame *to = w->frames + w->n;
	struct asgct_trace trace = { env, 0, (struct asgct_frame *)to };

	_Static_assert(sizeof(struct asgct_frame) == sizeof(struct walk_frame), "turned in place");
	asgct.call(&trace, depth, uc);
	for (int32_t i = 0; i < trace.n; i++) {
		struct asgct_frame f = ((struct asgct_frame *)to)[i];

		to[i] = (struct walk_frame){
			.where = (uint64_t)(uintptr_t)f.method,
			.bci = f.bci >= 0 ? f.bci : -1,
			.kind = f.bci == -3 ? WIRE_KIND_NATIVE_METHOD : WIRE_KIND_JAVA,
		};
	}
	if (trace.n > 0)
		w->n += (uint32_t)trace.n;
	if (trace.n == depth)
		w->broken = "too_deep";
	return trace.n;
}

static void put_label_sig(struct walk *w, const char *label, uint8_t kind)
{
	w->frames[w->n++] = (struct walk_frame){
		.where = (uint64_t)(uintptr_t)label,
		.bci = -1,
		.kind = kind,
	};
}

static int32_t retry_at_sig(struct walk *w, JNIEnv *env, ucontext_t *uc, struct regs at)
{
	struct regs saved = regs_get(uc);
	uint32_t n = w->n;
	int32_t r;

	if (!in_code_cache(at.pc))
		return -5;
	put_label_sig(w, "[stub]", WIRE_KIND_STUB);
	regs_set(uc, at);
	r = java_frames_sig(w, env, uc);
	regs_set(uc, saved);
	if (r <= 0)
		w->n = n;
	return r;
}

/* The top frame is JIT code that AsyncGetCallTrace would not walk: go on from its caller. */
static int32_t retry_sig(struct walk *w, JNIEnv *env, ucontext_t *uc)
{
	struct regs top = regs_get(uc);
	uint64_t words[8], saved[2];
	int32_t r;

	if (!guarded_read_sig(top.sp, words, sizeof(words)))
		return -6;
	/* no frame yet, or no more: the return address is on top */
	r = retry_at_sig(w, env, uc, (struct regs){ words[0], top.sp + 8, top.fp });
	if (r > 0)
		return r;
	if (top.fp > top.sp && guarded_read_sig(top.fp, saved, sizeof(saved))) {
		r = retry_at_sig(w, env, uc, (struct regs){ saved[1], top.fp + 16, saved[0] });
		if (r > 0)
			return r;
	}
	for (uint32_t i = 1; i < 8; i++) {
		r = retry_at_sig(w, env, uc,
				 (struct regs){ words[i], top.sp + 8 * (i + 1), top.fp });
		if (r > 0)
			return r;
	}
	return -6;
}

void walk_sig(struct walk *w, void *ucontext)
{
	ucontext_t *uc = ucontext;
	struct regs regs = regs_get(uc);
	bool native = !in_code_cache(regs.pc);
	JNIEnv *env;
	int32_t r;

	if (native)
		(void)walk_native_sig(w, &regs, 128);
	env = env_of_this_thread_sig();
	if (!env)
		return; /* a thread of the JVM or of a library: native to its root */
	r = java_frames_sig(w, env, uc);
	if (r < 0 && !native)
		r = retry_sig(w, env, uc);
	if (r < 0 && (uint32_t)-r < sizeof(failures) / sizeof(failures[0])) {
		if (!native)
			put_label_sig(w, "[unknown]", WIRE_KIND_UNKNOWN);
		w->broken = failures[-r];
	}
}
