/*
 * Unwind rows and the handler's native walk, on this very program: a signal arrives at a known
 * depth of recursion, in the middle of libc, and every level must be on the stack, up to the root.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "agent/base/guard.h"
#include "agent/walker/native/maps.h"
#include "agent/walker/native/unwind.h"
#include "tests/unit/unit.h"

#define DEPTH 100

static struct walk_frame frames[NATIVE_FRAMES_MAX];
static uint32_t n_frames;
static enum unwind_end how_it_ended;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct regs regs = regs_get(context);
	struct unwind_stack stack;

	(void)signal;
	(void)info;
	guard_enter_sig();
	unwind_stack_init_sig(&stack, regs.sp);
	n_frames = 0;
	how_it_ended = unwind_native_sig(&stack, &regs, frames, &n_frames, true, NATIVE_FRAMES_MAX);
	guard_leave_sig();
}

__attribute__((noinline, noclone)) static int recurse(int depth)
{
	volatile int mine = depth;

	if (depth == 1)
		raise(SIGUSR1);
	else
		mine += recurse(depth - 1);
	return mine;
}

static void *thread_main(void *arg)
{
	(void)arg;
	recurse(DEPTH);
	return NULL;
}

static uint32_t frames_of_recurse(void)
{
	uint64_t start = (uint64_t)(uintptr_t)recurse, next = (uint64_t)(uintptr_t)thread_main;
	uint64_t end = next > start && next < start + 512 ? next : start + 512;
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_frames; i++)
		n += frames[i].where > start && frames[i].where < end;
	return n;
}

static void a_thread_is_walked_to_its_root(void **state)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	pthread_t thread;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_true(maps_refresh() == 0);
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(how_it_ended, UNWIND_ROOT);
	assert_int_equal(frames_of_recurse(), DEPTH);
}

/* When the signals of two profilers meet, the walk begins inside the other one's handler. */
static void on_other_signal(int signal)
{
	(void)signal;
	raise(SIGUSR2);
}

static void a_walk_goes_through_anothers_signal_handler(void **state)
{
	struct sigaction walking = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct sigaction other = { .sa_handler = on_other_signal };
	pthread_t thread;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &other, NULL), 0);
	assert_int_equal(sigaction(SIGUSR2, &walking, NULL), 0);
	assert_true(maps_refresh() == 0);
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(how_it_ended, UNWIND_ROOT);
	assert_int_equal(frames_of_recurse(), DEPTH);
}

static void an_unreadable_address_is_told_apart(void **state)
{
	uint64_t here = 0;

	(void)state;
	assert_true(guard_readable_sig((uint64_t)(uintptr_t)&here));
	assert_false(guard_readable_sig(8));
}

static void the_stack_is_not_read_below_sp_nor_far_above(void **state)
{
	uint64_t here = 7, word, sp = (uint64_t)(uintptr_t)&here;
	struct unwind_stack stack;

	(void)state;
	unwind_stack_init_sig(&stack, sp);
	assert_true(unwind_load_sig(&stack, sp, &word));
	assert_int_equal(word, 7);
	assert_false(unwind_load_sig(&stack, sp + 4, &word));
	assert_false(unwind_load_sig(&stack, sp - 4096, &word));
	assert_false(unwind_load_sig(&stack, sp + (2u << 20), &word));
}

/* A header and one CIE and FDE made by hand: push rbp; mov rbp,rsp; ... ; ret */
static const uint8_t made_frame[] = {
	/* CIE at 0: length 20, id 0, version 1, "zR", code 1, data -8, ra 16, encoding absptr */
	20,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	1,
	'z',
	'R',
	0,
	1,
	0x78,
	16,
	1,
	0x00,
	0x0c,
	7,
	8,
	0x90,
	1,
	0,
	0,
	/* FDE at 24: length 36, CIE 28 bytes back, start 0x1000, 16 bytes, no augmentation */
	36,
	0,
	0,
	0,
	28,
	0,
	0,
	0,
	0x00,
	0x10,
	0,
	0,
	0,
	0,
	0,
	0,
	16,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	0,
	0x41,
	0x0e,
	16,
	0x86,
	2, /* after 1 byte: CFA = sp + 16, rbp at CFA - 16 */
	0x43,
	0x0d,
	6, /* after 3 more: CFA by rbp */
	0x4b,
	0x0c,
	7,
	8,
	0xc6,
	0,
	0,
};
static uint32_t memory[8192];
static struct cfi_table *const table = (struct cfi_table *)memory;

static long build(const uint8_t *frame, size_t len, size_t room)
{
	uint8_t header[24] = { 1, 0x04, 0x03, 0x3b, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0 };
	int32_t fde = 0x10000 + 24 - 0x20000;
	struct cfi_bytes h = { .bytes = header, .len = sizeof(header), .address = 0x20000 };
	struct cfi_bytes f = { .bytes = frame, .len = len, .address = 0x10000 };

	memcpy(header + 20, &fde, 4);
	return cfi_build(&h, &f, 0, table, room);
}

static uint32_t n_rows(void)
{
	return table->words[table->blocks_at + table->n_blocks];
}

static void rows_follow_a_function_from_entry_to_return(void **state)
{
	uint32_t rule;

	(void)state;
	assert_true(build(made_frame, sizeof(made_frame), sizeof(memory)) > 0);
	assert_int_equal(n_rows(), 5);
	rule = cfi_find(table, 0x1000);
	assert_int_equal(cfi_rule_kind(rule), CFI_SP);
	assert_int_equal(cfi_rule_offset(rule), 8);
	assert_int_equal(cfi_rule_fp(rule), 0);
	rule = cfi_find(table, 0x1003);
	assert_int_equal(cfi_rule_kind(rule), CFI_SP);
	assert_int_equal(cfi_rule_offset(rule), 16);
	assert_int_equal(cfi_rule_fp(rule), 16);
	rule = cfi_find(table, 0x1004);
	assert_int_equal(cfi_rule_kind(rule), CFI_FP);
	assert_int_equal(cfi_find(table, 0x0fff), CFI_NONE);
	assert_int_equal(cfi_find(table, 0x1010), CFI_NONE);
}

static void tables_cut_anywhere_do_no_harm(void **state)
{
	long whole = build(made_frame, sizeof(made_frame), sizeof(memory));

	(void)state;
	for (size_t len = 0; len < sizeof(made_frame); len++)
		assert_true(build(made_frame, len, sizeof(memory)) <= whole);
	for (long room = 0; room < whole; room++)
		assert_int_equal(build(made_frame, sizeof(made_frame), (size_t)room), -ENOSPC);
	assert_int_equal(build(made_frame, sizeof(made_frame), (size_t)whole), whole);
}

/* The same function again, @gap bytes behind the first one. */
static long build_two(uint32_t gap)
{
	uint8_t header[32] = { 1, 0x04, 0x03, 0x3b, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0 };
	uint8_t frame[2 * sizeof(made_frame)];
	const size_t cie = 24, fde = sizeof(made_frame) - cie;
	struct cfi_bytes h = { .bytes = header, .len = sizeof(header), .address = 0x20000 };
	struct cfi_bytes f = { .bytes = frame, .len = sizeof(frame), .address = 0x10000 };
	uint32_t start = 0x1010 + gap, back = (uint32_t)(cie + fde + 4);

	memcpy(frame, made_frame, sizeof(made_frame));
	memcpy(frame + cie + fde, made_frame + cie, fde);
	memcpy(frame + cie + fde + 4, &back, 4);
	memcpy(frame + cie + fde + 8, &start, 4);
	for (uint32_t i = 0; i < 2; i++) {
		int32_t at = 0x10000 + (int32_t)(cie + i * fde) - 0x20000;

		memcpy(header + 16 + 8 * i, &start, 4); /* nobody reads it */
		memcpy(header + 20 + 8 * i, &at, 4);
	}
	return cfi_build(&h, &f, 0, table, sizeof(memory));
}

static void padding_between_functions_has_no_rows_of_its_own(void **state)
{
	(void)state;
	assert_true(build_two(15) > 0);
	/* the last row of the first function does not cover the first address of the second */
	assert_int_equal(n_rows(), 8);
	assert_int_equal(cfi_rule_offset(cfi_find(table, 0x101f)), 8);
	assert_int_equal(cfi_rule_offset(cfi_find(table, 0x1020)), 16);
	assert_true(build_two(16) > 0);
	assert_int_equal(n_rows(), 10);
	assert_int_equal(cfi_find(table, 0x101f), CFI_NONE);
	assert_int_equal(cfi_rule_kind(cfi_find(table, 0x1020)), CFI_SP);
}

/* Offsets that neither a rule nor its fields can hold: that code gets no row. */
static void absurd_offsets_are_no_rule(void **state)
{
	static const uint8_t programs[][11] = {
		{ 0x0e, 9, 0x00 }, /* def_cfa_offset that is not a multiple of a word */
		{ 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
		{ 0x0e, 0x80, 0x80, 0x80, 0x80, 0x08 }, /* 2^31 */
		{ 0x86, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		  0x7f }, /* fp saved far off */
		{ 0x86, 0x80, 0x80, 0x80, 0x80, 0x01 }, /* at -2^31 */
		{ 0x0d, 0x87, 0x02 }, /* def_cfa_register 263, which must not be taken for 7 */
		{ 0x0d, 3 },
		{ 0x3f }, /* no instruction */
	};
	uint8_t frame[sizeof(made_frame)];

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		memcpy(frame, made_frame, sizeof(frame));
		memset(frame + 49, 0, sizeof(frame) - 49);
		memcpy(frame + 49, programs[i], sizeof(programs[i]));
		assert_int_equal(build(frame, sizeof(frame), sizeof(memory)), 0);
	}
}

/* Rows over several blocks of 64 KiB, one of which has none: the index gives the same result as
 * a search through all rows. */
static void packed_rows_are_found_as_the_unpacked_ones(void **state)
{
	static struct cfi_row rows[5000];
	uint32_t pc = 0x1fff0, n = 5000;

	(void)state;
	cfi_pack_begin(table, sizeof(memory));
	for (uint32_t i = 0; i < n; i++) {
		pc += i == 2500 ? 0x25000 : 1 + i * 7919 % 97;
		rows[i] =
			(struct cfi_row){ pc, i % 11 == 0 ? CFI_NONE : CFI_SP | (i % 50 + 1) << 3 };
		assert_true(cfi_pack_row(&rows[i]));
	}
	assert_true(cfi_pack_end() > 0);
	for (uint32_t at = 0, i = 0; at < pc + 0x20000; at += 13) {
		while (i < n && rows[i].pc <= at)
			i++;
		assert_int_equal(cfi_find(table, at), i ? rows[i - 1].rule : CFI_NONE);
	}
}

/* A distance that spans two libraries is too large for one library's table. */
static void rows_too_far_from_each_other_are_refused(void **state)
{
	static const struct cfi_row near = { 0x1000, CFI_END };
	static const struct cfi_row far = { CFI_BLOCKS_MAX << 16, CFI_END };

	(void)state;
	cfi_pack_begin(table, sizeof(memory));
	assert_true(cfi_pack_row(&near));
	assert_false(cfi_pack_row(&far));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_rows_are_found_as_the_unpacked_ones),
		cmocka_unit_test(a_thread_is_walked_to_its_root),
		cmocka_unit_test(a_walk_goes_through_anothers_signal_handler),
		cmocka_unit_test(an_unreadable_address_is_told_apart),
		cmocka_unit_test(the_stack_is_not_read_below_sp_nor_far_above),
		cmocka_unit_test(rows_follow_a_function_from_entry_to_return),
		cmocka_unit_test(tables_cut_anywhere_do_no_harm),
		cmocka_unit_test(padding_between_functions_has_no_rows_of_its_own),
		cmocka_unit_test(absurd_offsets_are_no_rule),
		cmocka_unit_test(rows_too_far_from_each_other_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
