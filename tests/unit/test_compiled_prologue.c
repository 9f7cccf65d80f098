/* Whether a compiled frame is already gone, decided by the instructions around the interrupted
 * one. */
#include <sys/mman.h>
#include "agent/walker/java/hotspot_priv.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

#define CALLER	  0x7000u /* may be returned to */
#define STALE	  0x8000u /* a return address may lie here too, but none does */
#define FRAME_END 10 /* word of the stack that has the caller's address */

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

/* The end of a method that locks, as C1 and C2 of JDK 17 and 25 compile it, at these offsets. */
enum { POP = 4, CHECK = 5, JB = 12, CALL = 18, POLL = 46, JA = 50, RET = 56, AFTER = 57 };

static const uint8_t locking[] = {
	/* bytes before the code that a backward scan may read */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
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
	0x0f, 0x87, 0x00, 0x00, 0x00, 0x00, /* ja to the safepoint poll's stub */
	0xc3, /* ret */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

/* The wrapper of Object.hashCode on JDK 25. */
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

/* A thread is interrupted there with so many words of its frame on the stack, whatever they
 * contain: is the caller found? */
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

static void a_word_in_a_new_frame_is_no_return_address(void **state)
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

/* GraalVM's compiler builds no frame for a method that needs none. */
static void a_frame_that_is_never_complete_was_not_built(void **state)
{
	static const uint8_t adds[] = {
		0xb8, 1, 0, 0, 0, 0x41, 0x03, 0xc2
	}; /* mov eax, 1; add eax, r10d */
	struct hot h = {
		.at = { (uint64_t)(uintptr_t)adds + 5, (uint64_t)(uintptr_t)&stack[FRAME_END],
			0x1234 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .code = (uint64_t)(uintptr_t)adds,
			  .frame_words = 2,
			  .kind = BLOB_NMETHOD };
	struct hot framed = h;

	(void)state;
	vm_sig.nm_osr_entry = -1;
	stack[FRAME_END] = CALLER;
	stack[FRAME_END + 1] = STALE;
	assert_false(compiled_prologue_sig(&framed, &b));
	b.frame_complete = -1;
	assert_true(compiled_prologue_sig(&h, &b));
	assert_true(h.at.pc == CALLER && h.at.fp == 0x1234);
	assert_ptr_equal(h.at.sp, &stack[FRAME_END + 1]);
}

/* A thread is interrupted there with the return address on top of the stack: is its frame known
 * to be gone? */
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

/* The same as GraalVM's compiler for JDK 25 writes it. */
enum {
	G_LOAD = 0,
	G_ADD = 5,
	G_CHECK = 9,
	G_JB = 16,
	G_POLL = 53,
	G_JA = 57,
	G_ZERO = 63,
	G_RET = 66,
	G_STUB = 68,
	G_STORE = 75,
	G_JMP = 82
};

static const uint8_t graal[] = {
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x48, 0x8b,
	0x6c, 0x24, 0x10, /* mov rbp, [rsp + 16] */
	0x48, 0x83, 0xc4, 0x28, /* add rsp, 40 */
	0x49, 0x3b, 0xa7, 0xb8, 0x05, 0x00, 0x00, /* cmp rsp, [r15 + 0x5b8] */
	0x72, 0x23, /* jb to the poll */
	0x48, 0x83, 0xec, 0x08, /* sub rsp, 8 */
	0x49, 0x8b, 0xff, /* mov rdi, r15 */
	0x48, 0xb9, 1,	  2,	3,    4,    5,	  6,	7,    8, /* mov rcx, N */
	0xff, 0xd1, /* call rcx */
	0x48, 0x83, 0xc4, 0x08, /* add rsp, 8 */
	0x48, 0xb9, 1,	  2,	3,    4,    5,	  6,	7,    8, /* mov rcx, N */
	0xff, 0xe1, /* jmp rcx */
	0x49, 0x3b, 0x67, 0x28, /* cmp rsp, [r15 + 0x28] */
	0x0f, 0x87, 0x05, 0x00, 0x00, 0x00, /* ja to the stub */
	0xc5, 0xf8, 0x77, /* vzeroupper */
	0xc3, 0xf4, /* ret; hlt */
	0x48, 0x8d, 0x0d, 0xe1, 0xff, 0xff, 0xff, /* lea rcx, [rip - 31] */
	0x49, 0x89, 0x8f, 0x38, 0x05, 0x00, 0x00, /* mov [r15 + 0x538], rcx */
	0xe9, 0x00, 0x00, 0x00, 0x00, /* jmp */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

static void graals_frame_is_gone_behind_the_addition_of_its_size(void **state)
{
	static const uint8_t gone[] = { G_CHECK, G_JB,	 G_POLL,  G_JA, G_ZERO,
					G_RET,	 G_STUB, G_STORE, G_JMP };
	uint8_t other[sizeof(graal)];

	(void)state;
	for (size_t i = 0; i < sizeof(gone); i++)
		assert_true(is_gone(graal, gone[i]));
	assert_false(is_gone(graal, G_LOAD));
	assert_false(is_gone(graal, G_ADD));
	memcpy(other, graal, sizeof(graal));
	other[8 + G_ADD + 3] = 0x20; /* not the frame's size */
	assert_false(is_gone(other, G_CHECK));
	assert_false(is_gone(other, G_JB));
	assert_false(is_gone(other, G_POLL));
}

static void a_question_of_another_register_is_none(void **state)
{
	uint8_t other[sizeof(locking)];

	(void)state;
	memcpy(other, locking, sizeof(locking));
	other[8 + CHECK + 2] = 0x9f; /* cmp rbx, as in the code that allocates an object */
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
	other[8 + JB + 2] -= 1; /* not at the end of the range */
	assert_false(is_gone(other, POLL));
}

/* ---- spellings ---- */

#define PAGE 4096

/* The walk's conclusion from an instruction: the frame is complete, is gone, or rbp is about to
 * be popped. */
enum told { KEPT, GONE, POPPING };

struct spelling {
	enum told expected;
	uint8_t before[16], n_before; /* the instruction that ends at the interrupted one */
	uint8_t code[20], n_code; /* that one, and more */
	/* bytes of the instruction that are needed; with fewer the result must be KEPT; 0 = even
	 * one is enough */
	uint8_t needed;
	enum blob_kind kind;
	const char *text;
};

#define BYTES(...) { __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define NOP	   BYTES(0x90)
#define POP	   BYTES(0x48, 0x83, 0xc4, 0x20, 0x5d) /* add rsp, 32; pop rbp */
#define LEAVE	   BYTES(0xc9)

#define WRAPPER BLOB_NATIVE_NMETHOD

static const struct spelling spellings[] = {
	{ POPPING, NOP, BYTES(0x5d), 1, BLOB_NMETHOD, "pop rbp" },
	{ KEPT, NOP, BYTES(0x5b), 0, BLOB_NMETHOD, "pop rbx" },
	{ KEPT, NOP, BYTES(0x41, 0x5d), 0, BLOB_NMETHOD, "pop r13" },
	{ GONE, NOP, BYTES(0xc3), 1, BLOB_NMETHOD, "ret" },
	{ GONE, NOP, BYTES(0xc2, 0x10, 0x00), 1, BLOB_NMETHOD, "ret 16" },
	{ GONE, POP, BYTES(0x49, 0x3b, 0x67, 0x28), 3, BLOB_NMETHOD, "cmp rsp, [r15 + 40]" },
	{ GONE, POP, BYTES(0x49, 0x3b, 0xa7, 0x98, 0x04, 0, 0), 3, BLOB_NMETHOD,
	  "cmp rsp, [r15 + 0x498]" },
	{ KEPT, BYTES(0x4c, 0x31, 0xc9), BYTES(0x4c, 0x8b, 0xc9), 0, BLOB_NMETHOD,
	  "mov r9, rcx behind xor rcx, r9, which ends like leave" },
	{ KEPT, BYTES(0x4c, 0x03, 0xc9), BYTES(0x4d, 0x8b, 0x97, 0x08, 0x01, 0, 0), 0, BLOB_NMETHOD,
	  "mov r10, [r15 + 0x108] behind add r9, rcx: a poll in a loop" },
	{ KEPT, POP, BYTES(0x4c, 0x8b, 0xc9), 0, BLOB_NMETHOD, "mov r9, rcx behind pop" },
	{ KEPT, BYTES(0xc6, 0x43, 0x10, 0x5d), BYTES(0xe9, 0, 0, 0, 0), 0, BLOB_NMETHOD,
	  "jmp behind mov byte [rbx + 16], ']', which ends like pop rbp" },
	{ KEPT, BYTES(0x48, 0x83, 0xc4, 0x18, 0x5d), BYTES(0xe9, 0, 0, 0, 0), 0, BLOB_NMETHOD,
	  "jmp behind pop, but not of the whole frame" },
	{ KEPT, NOP, BYTES(0x49, 0x3b, 0x67, 0x28), 0, BLOB_NMETHOD,
	  "cmp rsp, [r15 + 40] in a loop" },
	{ KEPT, POP, BYTES(0x49, 0x3b, 0x5f, 0x28), 0, BLOB_NMETHOD, "cmp rbx, [r15 + 40]" },
	{ KEPT, POP, BYTES(0x48, 0x3b, 0x67, 0x28), 0, BLOB_NMETHOD, "cmp rsp, [rdi + 40]" },
	{ KEPT, POP, BYTES(0x49, 0x39, 0x67, 0x28), 0, BLOB_NMETHOD, "cmp [r15 + 40], rsp" },
	{ GONE, POP, BYTES(0x4d, 0x8b, 0x97, 0x08, 0x01, 0, 0), 3, BLOB_NMETHOD,
	  "mov r10, [r15 + 0x108]" },
	{ KEPT, POP, BYTES(0x4d, 0x8b, 0x9f, 0x08, 0x01, 0, 0), 0, BLOB_NMETHOD,
	  "mov r11, [r15 + 0x108]" },
	{ GONE, POP, BYTES(0x49, 0x8b, 0x8f, 0x08, 0x01, 0, 0), 3, BLOB_NMETHOD,
	  "mov rcx, [r15 + 0x108]" },
	{ KEPT, POP, BYTES(0x49, 0x8b, 0x87, 0x08, 0x01, 0, 0), 0, BLOB_NMETHOD,
	  "mov rax, [r15 + 0x108]" },
	{ GONE, POP, BYTES(0x4c, 0x8b, 0x15, 0, 0, 0, 0), 3, BLOB_NMETHOD, "mov r10, [rip]" },
	{ KEPT, POP, BYTES(0x48, 0x8b, 0x15, 0, 0, 0, 0), 0, BLOB_NMETHOD, "mov rdx, [rip]" },
	{ GONE, POP, BYTES(0x85, 0x05, 0, 0, 0, 0), 2, BLOB_NMETHOD, "test [rip], eax" },
	{ KEPT, NOP, BYTES(0x85, 0x05, 0, 0, 0, 0), 0, BLOB_NMETHOD, "test [rip], eax in a loop" },
	{ GONE, NOP, BYTES(0x85, 0x05, 0, 0, 0, 0, 0xc3), 7, BLOB_NMETHOD, "test [rip], eax; ret" },
	{ GONE, NOP, BYTES(0x85, 0x01, 0xc3), 3, BLOB_NMETHOD, "test [rcx], eax; ret" },
	{ KEPT, NOP, BYTES(0x85, 0x02, 0xc3), 0, BLOB_NMETHOD, "test [rdx], eax; ret" },
	{ KEPT, POP, BYTES(0x85, 0x01, 0x90), 0, BLOB_NMETHOD, "test [rcx], eax; nop" },
	{ GONE, NOP, BYTES(0x41, 0x85, 0x02, 0xc3), 4, BLOB_NMETHOD, "test [r10], eax; ret" },
	{ KEPT, NOP, BYTES(0x41, 0x85, 0x03, 0xc3), 0, BLOB_NMETHOD, "test [r11], eax; ret" },
	{ GONE, POP, BYTES(0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0x85, 0x02, 0xc3), 13,
	  BLOB_NMETHOD, "mov r10, N; test [r10], eax; ret" },
	{ KEPT, NOP, BYTES(0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0x85, 0x02, 0xc3), 0,
	  BLOB_NMETHOD, "mov r10, N; test [r10], eax; ret in a loop" },
	{ KEPT, POP, BYTES(0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xd2, 0x90), 0,
	  BLOB_NMETHOD, "mov r10, N; call r10" },
	{ GONE, NOP, BYTES(0x0f, 0x87, 1, 0, 0, 0, 0xc3), 7, BLOB_NMETHOD, "ja; ret" },
	{ KEPT, NOP, BYTES(0x0f, 0x87, 1, 0, 0, 0, 0x90), 0, BLOB_NMETHOD, "ja; nop" },
	{ KEPT, NOP, BYTES(0x0f, 0x86, 1, 0, 0, 0, 0xc3), 0, BLOB_NMETHOD, "jbe; ret" },
	{ GONE, POP, BYTES(0xc5, 0xf8, 0x77), 3, BLOB_NMETHOD, "vzeroupper" },
	{ GONE, NOP, BYTES(0xc5, 0xf8, 0x77, 0xc3), 4, BLOB_NMETHOD, "vzeroupper; ret" },
	{ KEPT, NOP, BYTES(0xc5, 0xf8, 0x77, 0x90), 0, BLOB_NMETHOD, "vzeroupper; nop" },
	{ GONE, NOP, BYTES(0x0f, 0x87, 1, 0, 0, 0, 0xc5, 0xf8, 0x77, 0xc3), 10, BLOB_NMETHOD,
	  "ja; vzeroupper; ret" },
	{ GONE, BYTES(0x48, 0x81, 0xc4, 40, 0, 0, 0), BYTES(0x49, 0x3b, 0x67, 0x28), 3,
	  BLOB_NMETHOD, "cmp rsp, [r15 + 40] behind add rsp, the frame's size with 32 bits" },
	{ KEPT, BYTES(0x48, 0x83, 0xec, 40), BYTES(0x49, 0x3b, 0x67, 0x28), 0, BLOB_NMETHOD,
	  "cmp rsp, [r15 + 40] behind sub rsp" },
	{ KEPT, LEAVE, BYTES(0xc5, 0xf8, 0x77), 0, BLOB_NMETHOD, "vzeroupper behind leave" },
	{ GONE, POP, BYTES(0xe9, 0, 0, 0, 0), 1, BLOB_NMETHOD, "jmp behind pop" },
	{ KEPT, NOP, BYTES(0xe9, 0, 0, 0, 0), 0, BLOB_NMETHOD, "jmp" },
	{ KEPT, NOP, BYTES(0x0f, 0x85, 1, 0, 0, 0, 0xc3), 0, BLOB_NMETHOD, "jne; ret" },
	{ KEPT, NOP, BYTES(0x75, 0x01, 0xc3), 0, BLOB_NMETHOD, "jne; ret, short" },
	{ GONE, NOP, BYTES(0x0f, 0x85, 1, 0, 0, 0, 0xc3), 7, WRAPPER, "jne; ret, in a wrapper" },
	{ GONE, NOP, BYTES(0x75, 0x01, 0xc3), 3, WRAPPER, "jne; ret, short, in a wrapper" },
	{ GONE, LEAVE, BYTES(0x90), 1, WRAPPER, "behind leave, in a wrapper" },
	{ GONE, BYTES(0xc9, 0xc5, 0xf8, 0x77), BYTES(0x90), 1, WRAPPER, "leave; vzeroupper" },
	{ GONE, BYTES(0xc9, 0x75, 0x00), BYTES(0x90), 1, WRAPPER, "leave; jne" },
	{ GONE, BYTES(0xc9, 0xc3), BYTES(0xe9, 0, 0, 0, 0), 1, WRAPPER, "leave; ret; jmp" },
	{ GONE, BYTES(0xc9, 0x41, 0xf6, 0x47, 0x44, 0x01), BYTES(0x90), 1, WRAPPER,
	  "leave; test byte [r15 + 0x44], 1" },
	{ GONE, BYTES(0xc9, 0x41, 0xf6, 0x87, 0x44, 1, 0, 0, 1), BYTES(0x90), 1, WRAPPER,
	  "leave; test byte [r15 + 0x144], 1" },
	{ GONE, BYTES(0xc9, 0x49, 0x83, 0x7f, 0x08, 0), BYTES(0x90), 1, WRAPPER,
	  "leave; cmp [r15 + 8], 0" },
	{ GONE, BYTES(0xc9, 0x49, 0x83, 0xbf, 0x08, 1, 0, 0, 0), BYTES(0x90), 1, WRAPPER,
	  "leave; cmp [r15 + 0x108], 0" },
	{ GONE, BYTES(0xc9, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8), BYTES(0x90), 1, WRAPPER,
	  "leave; mov r10, N" },
	{ GONE, BYTES(0xc9, 0x4c, 0x8d, 0x15, 1, 0, 0, 0), BYTES(0x90), 1, WRAPPER,
	  "leave; lea r10, [rip + 1]" },
	{ GONE, BYTES(0xc9, 0x4d, 0x89, 0x97, 1, 0, 0, 0), BYTES(0x90), 1, WRAPPER,
	  "leave; mov [r15 + 1], r10" },
	{ KEPT, BYTES(0xc9, 0x89, 0xc0), BYTES(0x90), 0, WRAPPER, "leave; mov eax, eax" },
	{ KEPT, BYTES(0xc9, 0xc3, 0x75, 0x00), BYTES(0x90), 0, WRAPPER, "leave; ret; jne" },
	{ GONE, NOP, BYTES(0x4c, 0x8d, 0x15, 1, 0, 0, 0, 0x4d, 0x89, 0x97, 1, 0, 0, 0), 10,
	  BLOB_NMETHOD, "lea r10, [rip + 1]; mov [r15 + 1], r10" },
	{ GONE, NOP, BYTES(0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 0x89, 0x97, 1, 0, 0, 0), 13,
	  BLOB_NMETHOD, "mov r10, N; mov [r15 + 1], r10" },
	{ KEPT, NOP, BYTES(0x4c, 0x8d, 0x1d, 1, 0, 0, 0, 0x4d, 0x89, 0x97, 1, 0, 0, 0), 0,
	  BLOB_NMETHOD, "lea r11, [rip + 1]; mov [r15 + 1], r10" },
	{ GONE, BYTES(0x4c, 0x8d, 0x15, 1, 0, 0, 0), BYTES(0x4d, 0x89, 0x97, 1, 0, 0, 0), 3,
	  BLOB_NMETHOD, "the same, at the mov" },
	{ GONE, BYTES(0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8), BYTES(0x4d, 0x89, 0x97, 1, 0, 0, 0), 3,
	  BLOB_NMETHOD, "the same with N, at the mov" },
	{ KEPT, NOP, BYTES(0x4d, 0x89, 0x97, 1, 0, 0, 0), 0, BLOB_NMETHOD,
	  "mov [r15 + 1], r10 alone" },
	{ GONE, BYTES(0x4c, 0x8d, 0x15, 1, 0, 0, 0, 0x4d, 0x89, 0x97, 1, 0, 0, 0),
	  BYTES(0xe9, 0, 0, 0, 0), 1, BLOB_NMETHOD, "the same, at the jmp behind it" },
};

/* The conclusion at the end of readable memory, with only @n bytes of the code. */
static enum told told(uint8_t *end, const struct spelling *s, size_t n, enum blob_kind kind)
{
	uint8_t *at = end - n;
	struct hot h = {
		.at = { (uint64_t)(uintptr_t)at, (uint64_t)(uintptr_t)&stack[FRAME_END], 0x1234 },
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.leaf = true,
	};
	struct blob b = { .code = h.at.pc - 64, .frame_words = 6, .kind = kind };

	memset(end - 256, 0x90, 256);
	memcpy(at - s->n_before, s->before, s->n_before);
	memcpy(at, s->code, n);
	memset(stack, 0, sizeof(stack));
	stack[FRAME_END] = STALE;
	stack[FRAME_END + 1] = CALLER;
	if (!compiled_prologue_sig(&h, &b))
		return KEPT;
	assert_int_equal(h.at.fp, h.at.pc == CALLER ? STALE : 0x1234);
	assert_ptr_equal(h.at.sp, &stack[FRAME_END + (h.at.pc == CALLER ? 2 : 1)]);
	return h.at.pc == CALLER ? POPPING : GONE;
}

static uint8_t *end_of_memory(void)
{
	uint8_t *pages = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	return pages + PAGE;
}

static void instructions_tell_that_the_frame_is_gone_also_where_memory_ends(void **state)
{
	uint8_t *end = end_of_memory();

	(void)state;
	vm_sig.nm_osr_entry = -1;
	for (size_t k = 0; k < sizeof(spellings) / sizeof(spellings[0]); k++) {
		const struct spelling *s = &spellings[k];

		for (size_t n = 1; n <= s->n_code; n++)
			if (told(end, s, n, s->kind) != (n < s->needed ? KEPT : s->expected))
				fail_msg("%s, %zu bytes: %d", s->text, n, told(end, s, n, s->kind));
	}
	munmap(end - PAGE, (size_t)2 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_tell_that_the_frame_is_gone_also_where_memory_ends),
		cmocka_unit_test(a_word_in_a_new_frame_is_no_return_address),
		cmocka_unit_test(a_method_that_must_not_be_entered_any_more_has_the_same_frame),
		cmocka_unit_test(a_frame_that_is_never_complete_was_not_built),
		cmocka_unit_test(the_frame_of_a_method_that_locks_is_gone_behind_its_pop),
		cmocka_unit_test(graals_frame_is_gone_behind_the_addition_of_its_size),
		cmocka_unit_test(a_question_of_another_register_is_none),
		cmocka_unit_test(a_jump_to_the_stub_that_rethrows_may_stand_there_for_the_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* the code under test is only for x86-64 */

int main(void)
{
	return 77;
}

#endif
