/* Where the caller's pc is in adapters between interpreted and compiled code, in the safepoint
 * blob and in stubs that resolve calls. */
#include "agent/hotspot/continuation.h"
#include "agent/walker/java/hotspot_priv.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

#define CALLER 0x7000u /* may be returned to */
#define STALE  0x8000u /* a return address may lie here too, but none does */

struct vm_layout vm_sig;
static uint64_t stack[64];

bool return_fits_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	(void)h;
	(void)fp;
	(void)sp;
	return pc == CALLER || pc == STALE;
}

bool return_fits_java_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	return return_fits_sig(h, pc, fp, sp);
}

void hot_push_stub_sig(struct hot *h, const struct blob *b)
{
	(void)h;
	(void)b;
}

/* Must not be called for adapters on top of the stack. */
#define NOT_ASKED(result, name, ...)   \
	result name(__VA_ARGS__)       \
	{                              \
		fail_msg("%s", #name); \
		return 0;              \
	}

#define UNUSED __attribute__((unused))

NOT_ASKED(bool, return_known_sig, UNUSED const struct hot *h, UNUSED uint64_t pc)
NOT_ASKED(bool, return_by_fp_sig, UNUSED struct hot *h, UNUSED uint64_t max, UNUSED bool java_only)
NOT_ASKED(bool, return_is_throw_sig, UNUSED uint64_t pc)
NOT_ASKED(bool, return_to_thrower_by_fp_sig, UNUSED struct hot *h)
NOT_ASKED(bool, return_to_returning_sig, UNUSED struct hot *h, UNUSED const struct blob *b)
NOT_ASKED(bool, return_to_poll_sig, UNUSED struct hot *h, UNUSED const struct blob *b)
NOT_ASKED(uint64_t, call_far_target_sig, UNUSED uint64_t pc)
NOT_ASKED(bool, method_check_sig, UNUSED uint64_t method)
NOT_ASKED(bool, compiled_prologue_sig, UNUSED struct hot *h, UNUSED const struct blob *b)
NOT_ASKED(bool, deopt_frames_sig, UNUSED struct hot *h)

#define POLL 0x90000u /* in a compiled method */

bool code_blob_sig(uint64_t pc, struct blob *ret)
{
	*ret = (struct blob){ .kind = BLOB_NMETHOD };
	return pc == POLL;
}

bool emulate_stub_sig(struct hot *h, const struct blob *b)
{
	(void)h;
	(void)b;
	return false; /* not decoded */
}

bool emulate_safepoint_sig(struct hot *h, uint64_t poll, const struct blob *polled)
{
	(void)h;
	(void)poll;
	(void)polled;
	return false; /* not decoded */
}

bool continuation_cross_sig(struct hot *h)
{
	(void)h;
	return false;
}

bool continuation_is_barrier_sig(uint64_t pc)
{
	(void)pc;
	return false;
}

/* ---- from interpreted to compiled code ------------------------------------------------------- */

#define SENDER 20 /* words of the stack: the caller's top, and the return address below it */

/* The adapter of JDK 17 for a method whose arguments fit into registers, and that of JDK 25. */
enum { I_LOAD = 0, I_COPY = 4, I_AND = 7, I_PUSH = 11, I_SAVED = 12, I_JUMP = 15 };

static const uint8_t into_compiled[] = {
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, /* what is read backwards */
	0x48, 0x8b, 0x04, 0x24, /* mov rax, [rsp] */
	0x4c, 0x8b, 0xdc, /* mov r11, rsp */
	0x48, 0x83, 0xe4, 0xf0, /* and rsp, -16 */
	0x50, /* push rax */
	0x49, 0x8b, 0xc3, /* mov rax, r11 */
	0x41, 0xff, 0xe3, /* jmp r11 */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

enum { C_POP = 0, C_COPY = 1, C_SUB = 4, C_STORE = 8, C_STORED = 12 };

static const uint8_t into_interpreted[] = {
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, /* what is read backwards */
	0x58, /* pop rax */
	0x4c, 0x8b, 0xec, /* mov r13, rsp */
	0x48, 0x83, 0xec, 0x20, /* sub rsp, 32 */
	0x48, 0x89, 0x04, 0x24, /* mov [rsp], rax */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

/* An entry barrier that looks up the method's class first and makes room for the registers that
 * it saves. */
enum { B_ROOM = 0, B_SAVE = 7 };

static const uint8_t barrier[] = {
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, /* what is read backwards */
	0x48, 0x81, 0xec, 0x40, 0x00, 0x00, 0x00, /* sub rsp, 64 */
	0x48, 0x89, 0x04, 0x24, /* mov [rsp], rax */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

/* If the thread is interrupted at @at: are the caller and its sp found? */
static bool is_left(const uint8_t *code, size_t at, size_t sp, uint64_t rax, size_t r13)
{
	struct hot h = {
		.at = { (uint64_t)(uintptr_t)(code + 8 + at), (uint64_t)(uintptr_t)&stack[sp],
			0x1234 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .kind = BLOB_ADAPTER };

	h.regs.rax = rax;
	h.regs.r13 = (uint64_t)(uintptr_t)&stack[r13];
	return blob_frame_sig(&h, &b) && h.at.pc == CALLER && h.at.fp == 0x1234 &&
	       h.at.sp == (uint64_t)(uintptr_t)&stack[SENDER];
}

static void fill(size_t returns)
{
	for (size_t i = 0; i < 64; i++)
		stack[i] = i < SENDER ? STALE : 0;
	stack[returns] = CALLER;
}

static void aligning_the_stack_makes_no_return_address(void **state)
{
	(void)state;
	fill(SENDER - 1);
	assert_true(is_left(into_compiled, I_LOAD, SENDER - 1, 0, SENDER));
	assert_true(is_left(into_compiled, I_COPY, SENDER - 1, CALLER, SENDER));
	assert_true(is_left(into_compiled, I_AND, SENDER - 1, CALLER, SENDER));
	assert_true(is_left(into_compiled, I_PUSH, SENDER - 1, CALLER, SENDER));
	assert_true(is_left(into_compiled, I_PUSH, SENDER - 2, CALLER, SENDER));
}

static void once_pushed_again_it_is_on_top(void **state)
{
	(void)state;
	fill(SENDER - 1);
	stack[SENDER - 3] = CALLER;
	assert_true(is_left(into_compiled, I_SAVED, SENDER - 3, CALLER, SENDER));
}

static void room_for_arguments_of_interpreted_code_holds_what_was_there_before(void **state)
{
	(void)state;
	fill(SENDER - 1);
	assert_true(is_left(into_interpreted, C_POP, SENDER - 1, 0, 40));
	assert_true(is_left(into_interpreted, C_COPY, SENDER, CALLER, 40));
	assert_true(is_left(into_interpreted, C_SUB, SENDER, CALLER, SENDER));
	assert_true(is_left(into_interpreted, C_STORE, SENDER - 4, CALLER, SENDER));
	stack[SENDER - 4] = CALLER;
	assert_true(is_left(into_interpreted, C_STORED, SENDER - 4, CALLER, SENDER));
}

static void room_for_registers_holds_what_was_there_before(void **state)
{
	(void)state;
	fill(SENDER - 1);
	assert_true(is_left(barrier, B_ROOM, SENDER - 1, 0, 40));
	assert_true(is_left(barrier, B_SAVE, SENDER - 9, 0, 40));
}

/* ---- stubs with frames ---- */

static void a_safepoint_is_left_by_its_frame_pointer_while_it_saves_registers(void **state)
{
	static const uint8_t code[] = { 0x53, 0x55, 0x48, 0x8b, 0xec, 0x9c, 0x48, 0x83,
					0xec, 0x08, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	uint64_t thread[1] = { POLL }, begin = (uint64_t)(uintptr_t)code;
	struct hot h = {
		.at = { begin + 10, (uint64_t)(uintptr_t)&stack[4],
			(uint64_t)(uintptr_t)&stack[8] },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.thread = (uint64_t)(uintptr_t)thread,
		.leaf = true,
	};
	struct walk_frame frames[1];
	struct walk w = { .frames = frames, .n = 1 };
	struct blob b = {
		.code = begin, .end = begin + 16, .frame_words = 30, .kind = BLOB_SAFEPOINT
	};

	(void)state;
	h.w = &w;
	vm_sig.thread_saved_pc = 0;
	code_cache_sig.low = POLL;
	code_cache_sig.high = POLL + 1;
	fill(4 + 30 - 1); /* as at the end of the frame */
	stack[8] = 0x1234;
	stack[9] = CALLER; /* rbx, whatever that is */
	assert_true(blob_frame_sig(&h, &b));
	assert_int_equal(h.at.pc, POLL);
	assert_int_equal(h.at.fp, 0x1234);
	assert_int_equal(h.at.sp, (uint64_t)(uintptr_t)&stack[10]);
}

static void a_stub_that_jumps_to_what_it_resolved_has_no_frame_any_more(void **state)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90, 0x90, 0x9d, 0x5d, 0xff, 0xe0,
					0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	struct hot h = {
		.at = { (uint64_t)(uintptr_t)(code + 6), (uint64_t)(uintptr_t)&stack[SENDER - 1],
			0x1234 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .frame_words = 12, .kind = BLOB_RUNTIME };

	(void)state;
	fill(SENDER - 1);
	stack[SENDER - 2 + 12] = STALE;
	assert_true(blob_frame_sig(&h, &b));
	assert_int_equal(h.at.pc, CALLER);
	assert_int_equal(h.at.sp, (uint64_t)(uintptr_t)&stack[SENDER]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_safepoint_is_left_by_its_frame_pointer_while_it_saves_registers),
		cmocka_unit_test(a_stub_that_jumps_to_what_it_resolved_has_no_frame_any_more),
		cmocka_unit_test(room_for_registers_holds_what_was_there_before),
		cmocka_unit_test(aligning_the_stack_makes_no_return_address),
		cmocka_unit_test(once_pushed_again_it_is_on_top),
		cmocka_unit_test(
			room_for_arguments_of_interpreted_code_holds_what_was_there_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* the code under test is only for x86-64 */

int main(void)
{
	return 77;
}

#endif
