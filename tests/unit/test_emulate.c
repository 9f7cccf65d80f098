/* Follows instructions up to the return, on machine code of functions of HotSpot and musl. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/walker/native/emulate.h"
#include "agent/walker/native/instruction.h"
#include "agent/walker/native/unwind.h"
#include "tests/unit/unit.h"

#if defined(__x86_64__)

static uint64_t stack[64];

/* Emulates @code with sp at stack[@at]; the value of every register is its number. */
static enum emulation_end follow(const uint8_t *code, unsigned at, struct emulation *f)
{
	*f = (struct emulation){
		.pc = (uint64_t)(uintptr_t)code,
		.low = (uint64_t)(uintptr_t)stack,
		.high = (uint64_t)(uintptr_t)(stack + 64),
		.known = (1u << GPR_COUNT) - 1,
	};
	for (unsigned i = 0; i < GPR_COUNT; i++)
		f->reg[i] = i;
	f->reg[GPR_RSP] = (uint64_t)(uintptr_t)&stack[at];
	for (unsigned i = 0; i < 64; i++)
		stack[i] = 1000 + i;
	return emulate_sig(f, EMULATE_STEPS_STUB);
}

static unsigned word_of(const struct emulation *f, unsigned reg)
{
	return (unsigned)((f->reg[reg] - (uint64_t)(uintptr_t)stack) / 8);
}

#define CODE(...)                                                                              \
	(const uint8_t[])                                                                      \
	{                                                                                      \
		__VA_ARGS__, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, 0xf4, \
			0xf4, 0xf4, 0xf4, 0xf4, 0xf4                                           \
	}

static void a_return_finds_its_address_on_top(void **state)
{
	struct emulation f;

	(void)state;
	assert_int_equal(follow(CODE(0xc3), 10, &f), EMULATE_RETURNED);
	assert_int_equal(f.pc, 1010);
	assert_int_equal(word_of(&f, GPR_RSP), 11);
	assert_int_equal(follow(CODE(0xc2, 0x10, 0x00), 10, &f), EMULATE_RETURNED);
	assert_int_equal(word_of(&f, GPR_RSP), 13);
}

static void pushes_on_the_path_are_popped(void **state)
{
	struct emulation f;

	(void)state;
	/* push rbp; mov rbp, rsp; sub rsp, 32; call; leave; ret */
	assert_int_equal(follow(CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xe8, 0, 0, 0,
				     0, 0xc9, 0xc3),
				20, &f),
			 EMULATE_RETURNED);
	assert_int_equal(f.pc, 1020);
	assert_int_equal(f.reg[GPR_RBP], GPR_RBP);
}

static void a_saved_frame_pointer_comes_from_the_stack(void **state)
{
	struct emulation f;

	(void)state;
	/* add rsp, 16; pop rbp; ret */
	assert_int_equal(follow(CODE(0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3), 10, &f),
			 EMULATE_RETURNED);
	assert_int_equal(f.reg[GPR_RBP], 1012);
	assert_int_equal(f.pc, 1013);
	/* mov rbp, [rsp + 8]; add rsp, 16; ret */
	assert_int_equal(
		follow(CODE(0x48, 0x8b, 0x6c, 0x24, 0x08, 0x48, 0x83, 0xc4, 0x10, 0xc3), 10, &f),
		EMULATE_RETURNED);
	assert_int_equal(f.reg[GPR_RBP], 1011);
	assert_int_equal(f.pc, 1012);
}

static void an_exception_stub_leaves_with_the_pc_in_rdx(void **state)
{
	struct emulation f;

	(void)state;
	/* mov rbp, [rsp]; add rsp, 8; pop rdx; mov r8, rax; mov rdx, [r15 + 0x5e8]; jmp r8 */
	assert_int_equal(
		follow(CODE(0x48, 0x8b, 0x2c, 0x24, 0x48, 0x83, 0xc4, 0x08, 0x5a, 0x4c, 0x8b, 0xc0,
			    0x49, 0x8b, 0x97, 0xe8, 0x05, 0, 0, 0x41, 0xff, 0xe0),
		       10, &f),
		EMULATE_JUMPED);
	assert_int_equal(f.reg[GPR_RDX], 1011);
	assert_int_equal(f.pc, GPR_RAX);
	assert_int_equal(word_of(&f, GPR_RSP), 12);
}

static void a_way_that_ends_nowhere_is_gone_back_from(void **state)
{
	struct emulation f;

	(void)state;
	/* test eax, eax; jne +1; hlt; pop rcx; ret */
	assert_int_equal(follow(CODE(0x85, 0xc0, 0x75, 0x01, 0xf4, 0x59, 0xc3), 10, &f),
			 EMULATE_RETURNED);
	assert_int_equal(f.pc, 1011);
}

static void a_loop_is_left_by_the_branch_that_was_passed(void **state)
{
	struct emulation f;

	(void)state;
	/* again: test eax, eax; je out; nop; jmp again; hlt; out: pop rcx; ret */
	assert_int_equal(
		follow(CODE(0x85, 0xc0, 0x74, 0x04, 0x90, 0xeb, 0xf9, 0xf4, 0x59, 0xc3), 10, &f),
		EMULATE_RETURNED);
	assert_int_equal(f.pc, 1011);
}

static void a_stack_pointer_that_nobody_knows_is_no_way(void **state)
{
	struct emulation f;

	(void)state;
	/* mov rsp, [rax]; ret */
	assert_int_equal(follow(CODE(0x48, 0x8b, 0x20, 0xc3), 10, &f), EMULATE_LOST);
	/* add rsp, rcx; ret */
	assert_int_equal(follow(CODE(0x48, 0x01, 0xcc, 0xc3), 10, &f), EMULATE_LOST);
	/* jmp to itself, an endless loop */
	assert_int_equal(follow(CODE(0xeb, 0xfe), 10, &f), EMULATE_LOST);
	/* jmp [rax + rcx * 8], a switch */
	assert_int_equal(follow(CODE(0xff, 0x24, 0xc8), 10, &f), EMULATE_LOST);
}

static void more_stores_than_are_kept_make_what_is_loaded_unknown(void **state)
{
	uint8_t code[200];
	size_t n = 0;
	struct emulation f;

	(void)state;
	code[n++] = 0x55; /* push rbp */
	for (int i = 0; i < 30; i++) /* push rax */
		code[n++] = 0x50;
	memcpy(code + n, "\x48\x81\xc4\xf0\x00\x00\x00\x5d\xc3",
	       9); /* add rsp, 240; pop rbp; ret */
	assert_int_equal(follow(code, 40, &f), EMULATE_RETURNED);
	assert_int_equal(f.pc, 0);
	assert_false(emulation_knows(&f, GPR_RBP) && f.reg[GPR_RBP] != GPR_RBP);
}

/* Parses one line of objdump: address, bytes, text. Returns the number of bytes; 0 = it shows no
 * instruction. */
static size_t line_bytes(char *line, uint8_t *ret)
{
	char *p = strchr(line, '\t'), *end = p ? strchr(p + 1, '\t') : NULL;
	size_t n = 0;

	if (!end || strstr(end, "(bad)") || strstr(end, ".byte") || strstr(end, "\trex"))
		return 0;
	memset(ret, 0xcc, 32);
	for (p += strspn(p, " \t"); n <= INSTRUCTION_BYTES_MAX && p < end; p += strspn(p, " "))
		ret[n++] = (uint8_t)strtoul(p, &p, 16);
	return n;
}

static FILE *disassemble_libc(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], command[4200] = "", *path;

	while (maps && !command[0] && fgets(line, sizeof(line), maps)) {
		path = strchr(line, '/');
		if (path && strstr(path, "/libc."))
			snprintf(command, sizeof(command),
				 "objdump -d --insn-width=16 -j .text %.*s 2>/dev/null",
				 (int)strcspn(path, "\n"), path);
	}
	if (maps)
		fclose(maps);
	return command[0] ? popen(command, "re") : NULL;
}

static void lengths_are_those_of_objdump_for_all_of_libc(void **state)
{
	FILE *objdump = disassemble_libc();
	unsigned long seen = 0, wrong = 0;
	struct instruction i;
	uint8_t bytes[32];
	char line[4096];

	(void)state;
	assert_non_null(objdump);
	while (fgets(line, sizeof(line), objdump)) {
		size_t n = line_bytes(line, bytes);

		if (!n)
			continue;
		seen++;
		if (!instruction_decode_sig(bytes, &i) || i.length != n) {
			if (wrong++ < 5)
				print_error("%u: %s", i.length, line);
		}
	}
	pclose(objdump);
	if (!seen && !getenv("CI"))
		skip();
	assert_true(seen > 100000);
	assert_int_equal(wrong, 0);
}

static void any_bytes_end(void **state)
{
	struct emulation f;
	uint8_t code[512], copy[sizeof(code)];
	unsigned ends[3] = { 0 };

	(void)state;
	srand(1);
	for (int n = 0; n < 20000; n++) {
		enum emulation_end end;

		for (size_t i = 0; i < sizeof(code); i++)
			copy[i] = code[i] = (uint8_t)rand();
		end = follow(code, 30, &f);
		assert_in_range(end, EMULATE_LOST, EMULATE_JUMPED);
		ends[end]++;
		/* stores are recorded, and not carried out */
		assert_memory_equal(code, copy, sizeof(code));
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(stack[i], 1000 + i);
	}
	print_message("%u lost, %u returned, %u jumped\n", ends[EMULATE_LOST],
		      ends[EMULATE_RETURNED], ends[EMULATE_JUMPED]);
	assert_true(ends[EMULATE_LOST] > 1000);
	assert_true(ends[EMULATE_RETURNED] > 100); /* one byte of 256 is a ret */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_return_finds_its_address_on_top),
		cmocka_unit_test(pushes_on_the_path_are_popped),
		cmocka_unit_test(a_saved_frame_pointer_comes_from_the_stack),
		cmocka_unit_test(an_exception_stub_leaves_with_the_pc_in_rdx),
		cmocka_unit_test(a_way_that_ends_nowhere_is_gone_back_from),
		cmocka_unit_test(a_loop_is_left_by_the_branch_that_was_passed),
		cmocka_unit_test(a_stack_pointer_that_nobody_knows_is_no_way),
		cmocka_unit_test(more_stores_than_are_kept_make_what_is_loaded_unknown),
		cmocka_unit_test(lengths_are_those_of_objdump_for_all_of_libc),
		cmocka_unit_test(any_bytes_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* the code under test is only for x86-64 */

int main(void)
{
	return 77;
}

#endif
