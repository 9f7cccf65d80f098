/* Filters as container engines and units write them, applied to the system calls of the agent. */
#include "tests/unit/unit.h"
#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>
#include "injector/seccomp.h"

#define NR   offsetof(struct seccomp_data, nr)
#define ARCH offsetof(struct seccomp_data, arch)
#define ARG0 offsetof(struct seccomp_data, args)

static uint32_t run(const struct sock_filter *code, size_t len, int nr, uint64_t arg)
{
	struct seccomp_data data = { .nr = nr, .arch = AUDIT_ARCH_X86_64, .args = { arg } };

	return seccomp_run(code, len, &data) & SECCOMP_RET_ACTION_FULL;
}

static void a_list_of_refused_calls_is_understood(void **state)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARCH),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 2),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	(void)state;
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_timer_create, 0), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_ptrace, 0), SECCOMP_RET_ERRNO);
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_read, 0), SECCOMP_RET_ALLOW);
}

static void arguments_and_arithmetic_count(void **state)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 15),
		BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 3),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	(void)state;
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_prctl, 0xf0f), SECCOMP_RET_TRAP);
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_prctl, 0x00e), SECCOMP_RET_ALLOW);
}

/* libseccomp sorts calls into a tree, and newer rules check bits of arguments. */
static void ranges_and_bits_are_compared(void **state)
{
	static const struct {
		uint16_t op;
		int below, at, above; /* is it a jump, for 99, 100 and 101? */
	} rows[] = { { BPF_JGE, 0, 1, 1 }, { BPF_JGT, 0, 0, 1 }, { BPF_JEQ, 0, 1, 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct sock_filter code[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NR),
			BPF_JUMP((uint16_t)(BPF_JMP | rows[i].op | BPF_K), 100, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		const uint32_t answers[] = { SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP };

		assert_int_equal(run(code, ARRAY_SIZE(code), 99, 0), answers[rows[i].below]);
		assert_int_equal(run(code, ARRAY_SIZE(code), 100, 0), answers[rows[i].at]);
		assert_int_equal(run(code, ARRAY_SIZE(code), 101, 0), answers[rows[i].above]);
	}
}

static void a_bit_of_an_argument_decides(void **state)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARG0),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	(void)state;
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_prctl, 0x31), SECCOMP_RET_TRAP);
	assert_int_equal(run(code, ARRAY_SIZE(code), SYS_prctl, 0x2f), SECCOMP_RET_ALLOW);
}

static void programs_the_kernel_would_not_take_do_no_harm(void **state)
{
	static const struct sock_filter wild[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0x7fffffff),
		BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 0x7fffffff),
		BPF_STMT(BPF_STX, 99),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0),
		BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 40),
		BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
	};

	(void)state;
	assert_int_equal(run(wild, ARRAY_SIZE(wild), SYS_read, 0), SECCOMP_RET_ALLOW);
	assert_int_equal(run(wild, 0, SYS_read, 0), SECCOMP_RET_ALLOW);
}

static void only_what_ends_a_process_is_deadly(void **state)
{
	(void)state;
	assert_true(seccomp_is_deadly(SECCOMP_RET_KILL_PROCESS));
	assert_true(seccomp_is_deadly(SECCOMP_RET_KILL_THREAD | 7));
	assert_true(seccomp_is_deadly(SECCOMP_RET_TRAP | 1));
	assert_false(seccomp_is_deadly(SECCOMP_RET_ERRNO | 1));
	assert_false(seccomp_is_deadly(SECCOMP_RET_LOG));
	assert_false(seccomp_is_deadly(SECCOMP_RET_ALLOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_refused_calls_is_understood),
		cmocka_unit_test(arguments_and_arithmetic_count),
		cmocka_unit_test(ranges_and_bits_are_compared),
		cmocka_unit_test(a_bit_of_an_argument_decides),
		cmocka_unit_test(programs_the_kernel_would_not_take_do_no_harm),
		cmocka_unit_test(only_what_ends_a_process_is_deadly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
