/* Where a compiled frame is gone, told by the instructions around the interrupted one. */
#include "agent/walker/java/hotspot_priv.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

#define CALLER	  0x7000u /* may be returned to */
#define STALE	  0x8000u /* so may this, but nobody will */
#define FRAME_END 10 /* of the stack: where the caller's address is */

struct vm_layout vm_sig;
static uint64_t stack[64], entries[1];

bool return_known_sig(const struct hot *h, uint64_t pc)
{
	(void)h;
	return pc == CALLER || pc == STALE;
}

uint64_t call_target_sig(uint64_t pc)
{
	(void)pc;
	return 0;
}

/* The end of a method that locks, as C1 and C2 of JDK 17 and 25 have it: at these offsets. */
enum { POP = 4, CHECK = 5, JB = 12, CALL = 18, POLL = 46, JA = 50, RET = 56, AFTER = 57 };

static const uint8_t locking[] = {
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, /* what scans backwards may read */
	0x48, 0x83, 0xc4, 0x20, /* add rsp, 32 */
	0x5d, /* pop rbp */
	0x49, 0x3b, 0xa7, 0x98, 0x04, 0x00, 0x00, /* cmp rsp, [r15 + 0x498] */
	0x0f, 0x82, 0x1c, 0x00, 0x00, 0x00, /* jb to the poll */
	0x49, 0x8b, 0xff, /* mov rdi, r15 */
	0xf7, 0xc4, 0x0f, 0x00, 0x00, 0x00, /* test esp, 15 */
	0x0f, 0x84, 0x05, 0x00, 0x00, 0x00, /* je */
	0xe8, 0x00, 0x00, 0x00, 0x00, /* call */
	0x90, 0x90, 0x90, /* */
	0xe9, 0x00, 0x00, 0x00, 0x00, /* jmp to throw */
	0x49, 0x3b, 0x67, 0x28, /* cmp rsp, [r15 + 0x28] */
	0x0f, 0x87, 0x00, 0x00, 0x00, 0x00, /* ja to the poll's stub */
	0xc3, /* ret */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

/* Object.hashCode's wrapper on JDK 25. */
enum { FAST = 13, BANG = 24, PUSH = 31, MOV = 32, SUB = 35, NOP = 39, BARRIER = 40, COMPLETE = 55 };

static const uint8_t hashing[] = {
	0x48, 0x8b, 0x06, /* mov rax, [rsi] */
	0xa8, 0x02, /* test al, 2 */
	0x0f, 0x85, 0x0d, 0x00, 0x00, 0x00, /* jne to the frame */
	0x90, 0x90, 0x48, 0xc1, 0xe8, 0x0b, /* shr rax, 11 */
	0x90, 0x90, 0x90, 0x90, 0x74, 0x01, 0xc3, /* ret */
	0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* mov [rsp - 0x14000], eax */
	0x55, /* push rbp */
	0x48, 0x8b, 0xec, /* mov rbp, rsp */
	0x48, 0x83, 0xec, 0x40, /* sub rsp, 64 */
	0x90, 0x41, 0x81, 0x7f, 0x20, 0x00, 0x00, 0x00, 0x00, /* cmp [r15 + 32], N */
	0x74, 0x05, 0xe8, 0x00, 0x00, 0x00, 0x00, /* call the barrier */
	0x48, 0x89, 0x34, 0x24, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

/* Interrupted there with so many words of the frame on the stack, whatever lies in it: is the
 * caller found? */
static bool is_left(const uint8_t *code, enum blob_kind kind, size_t at, size_t words)
{
	uint64_t entry = (uint64_t)(uintptr_t)code,
		 sp = (uint64_t)(uintptr_t)&stack[FRAME_END - words];
	struct hot h = {
		.at = { entry + at, sp, at < SUB ? 0x1234 : sp },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .base = (uint64_t)(uintptr_t)entries,
			  .code = entry,
			  .frame_words = 10,
			  .frame_complete = COMPLETE,
			  .kind = kind };

	entries[0] = entry;
	vm_sig.nm_verified_entry = 0;
	for (size_t i = 0; i < 64; i++)
		stack[i] = STALE;
	stack[FRAME_END] = CALLER;
	if (words)
		stack[FRAME_END - 1] = 0x1234;
	return compiled_prologue_sig(&h, &b) && h.at.pc == CALLER && h.at.fp == 0x1234 &&
	       h.at.sp == (uint64_t)(uintptr_t)&stack[FRAME_END + 1];
}

static void what_lies_in_a_frame_just_made_is_no_return_address(void **state)
{
	(void)state;
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, 0, 0));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, FAST, 0));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, BANG, 0));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, PUSH, 0));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, MOV, 1));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, SUB, 1));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, NOP, 9));
	assert_true(is_left(hashing, BLOB_NATIVE_NMETHOD, BARRIER, 9));
}

static void a_method_that_must_not_be_entered_any_more_has_the_same_frame(void **state)
{
	uint8_t code[sizeof(hashing)];

	(void)state;
	memcpy(code, hashing + BANG, sizeof(hashing) - BANG);
	memset(code + sizeof(hashing) - BANG, 0x90, BANG);
	code[0] = 0xe9;
	assert_true(is_left(code, BLOB_NMETHOD, PUSH - BANG, 0));
	assert_true(is_left(code, BLOB_NMETHOD, MOV - BANG, 1));
	assert_true(is_left(code, BLOB_NMETHOD, NOP - BANG, 9));
	assert_true(is_left(code, BLOB_NMETHOD, BARRIER - BANG, 9));
}

/* Interrupted there with the return address on top: is the frame known to be gone? */
static bool is_gone(const uint8_t *code, size_t at)
{
	struct hot h = {
		.at = { (uint64_t)(uintptr_t)(code + 8 + at),
			(uint64_t)(uintptr_t)&stack[FRAME_END], 0x1234 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .code = h.at.pc - at, .frame_words = 6, .kind = BLOB_NMETHOD };

	memset(stack, 0, sizeof(stack));
	stack[FRAME_END] = CALLER;
	vm_sig.nm_osr_entry = -1;
	return compiled_prologue_sig(&h, &b) && h.at.pc == CALLER && h.at.fp == 0x1234 &&
	       h.at.sp == (uint64_t)(uintptr_t)&stack[FRAME_END + 1];
}

static void the_frame_of_a_method_that_locks_is_gone_behind_its_pop(void **state)
{
	(void)state;
	assert_true(is_gone(locking, CHECK));
	assert_true(is_gone(locking, JB));
	assert_true(is_gone(locking, POLL));
	assert_true(is_gone(locking, JA));
	assert_true(is_gone(locking, RET));
	assert_false(is_gone(locking, AFTER));
}

static void a_question_of_another_register_is_none(void **state)
{
	uint8_t other[sizeof(locking)];

	(void)state;
	memcpy(other, locking, sizeof(locking));
	other[8 + CHECK + 2] = 0x9f; /* cmp rbx, as where room is made for an object */
	assert_false(is_gone(other, JB));
	assert_false(is_gone(other, POLL));
	memcpy(other, locking, sizeof(locking));
	other[8 + POP] = 0x90; /* the frame is still there */
	assert_false(is_gone(other, JB));
	assert_false(is_gone(other, POLL));
}

static void a_jump_to_the_stub_that_rethrows_may_stand_there_for_the_poll(void **state)
{
	uint8_t other[sizeof(locking)];

	(void)state;
	memcpy(other, locking, sizeof(locking));
	other[8 + POLL] = 0xe9;
	assert_true(is_gone(other, POLL));
	other[8 + JB + 2] -= 1; /* not where the question ends */
	assert_false(is_gone(other, POLL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lies_in_a_frame_just_made_is_no_return_address),
		cmocka_unit_test(a_method_that_must_not_be_entered_any_more_has_the_same_frame),
		cmocka_unit_test(the_frame_of_a_method_that_locks_is_gone_behind_its_pop),
		cmocka_unit_test(a_question_of_another_register_is_none),
		cmocka_unit_test(a_jump_to_the_stub_that_rethrows_may_stand_there_for_the_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* its instructions are those of x86-64 */

int main(void)
{
	return 77;
}

#endif
