/* Recognises the call instruction that ends at a return address. */
#include "agent/walker/java/hotspot_priv.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

#define BYTES(...) { __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

struct vm_layout vm_sig;

/* The bytes before a return address. Targets are computed for an instruction that ends at
 * 0x10000. */
struct call {
	bool is_call;
	uint8_t code[16], n_code;
	uint64_t target, far_target; /* 0 = not in the instruction */
	const char *text;
};

static const struct call calls[] = {
	{ true, BYTES(0xe8, 0x10, 0, 0, 0), 0x10010, 0x10010, "call +16" },
	{ true, BYTES(0xe8, 0xf0, 0xff, 0xff, 0xff), 0xfff0, 0xfff0, "call -16" },
	{ true, BYTES(0xff, 0xd0), 0, 0, "call rax" },
	{ true, BYTES(0x41, 0xff, 0xd2), 0, 0, "call r10" },
	{ true, BYTES(0x49, 0xba, 8, 7, 6, 5, 4, 3, 2, 1, 0x41, 0xff, 0xd2), 0, 0x102030405060708,
	  "mov r10, N; call r10" },
	{ true, BYTES(0x49, 0xbb, 8, 7, 6, 5, 4, 3, 2, 1, 0x41, 0xff, 0xd2), 0, 0,
	  "mov r11, N; call r10" },
	{ true, BYTES(0x49, 0xba, 8, 7, 6, 5, 4, 3, 2, 1, 0x41, 0xff, 0xd3), 0, 0,
	  "mov r10, N; call r11" },
	{ true, BYTES(0xff, 0x10), 0, 0, "call [rax]" },
	{ true, BYTES(0xff, 0x50, 0x08), 0, 0, "call [rax + 8]" },
	{ true, BYTES(0xff, 0x14, 0xc8), 0, 0, "call [rax + 8 * rcx]" },
	{ true, BYTES(0xff, 0x54, 0xc8, 0x10), 0, 0, "call [rax + 8 * rcx + 16]" },
	{ true, BYTES(0xff, 0x90, 0, 1, 0, 0), 0, 0, "call [rax + 256]" },
	{ true, BYTES(0xff, 0x15, 0, 1, 0, 0), 0, 0, "call [rip + 256]" },
	{ true, BYTES(0xff, 0x94, 0xc8, 0, 1, 0, 0), 0, 0, "call [rax + 8 * rcx + 256]" },
	{ false, BYTES(0xff, 0xe0), 0, 0, "jmp rax" },
	{ false, BYTES(0xff, 0x60, 0x08), 0, 0, "jmp [rax + 8]" },
	{ false, BYTES(0xff, 0xa0, 0, 1, 0, 0), 0, 0, "jmp [rax + 256]" },
	{ false, BYTES(0xe9, 0x10, 0, 0, 0), 0, 0, "jmp +16" },
	{ false, BYTES(0xff, 0x70, 0x08), 0, 0, "push [rax + 8]" },
	{ false, BYTES(0xc3), 0, 0, "ret" },
};

static void calls_are_recognised_by_what_ends_at_the_return_address(void **state)
{
	uint8_t memory[40];
	uint64_t pc = (uint64_t)(uintptr_t)(memory + 24), moved = pc - 0x10000;

	(void)state;
	for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
		const struct call *c = &calls[k];
		uint64_t far = c->far_target == c->target ? moved : 0;

		memset(memory, 0x90, sizeof(memory));
		memcpy(memory + 24 - c->n_code, c->code, c->n_code);
		if (call_before_sig(pc) != c->is_call ||
		    call_target_sig(pc) != (c->target ? c->target + moved : 0) ||
		    call_far_target_sig(pc) != (c->far_target ? c->far_target + far : 0))
			fail_msg("%s", c->text);
	}
}

static void a_call_at_the_beginning_of_memory_is_none(void **state)
{
	(void)state;
	assert_false(call_before_sig(0));
	assert_int_equal(call_target_sig(4), 0);
	assert_int_equal(call_far_target_sig(100), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_recognised_by_what_ends_at_the_return_address),
		cmocka_unit_test(a_call_at_the_beginning_of_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* the code under test is only for x86-64 */

int main(void)
{
	return 77;
}

#endif
