/* Loads that may fault: with our hook in front of another handler, behind it, and removed again. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include "agent/base/guard.h"
#include "agent/base/guard_priv.h"
#include "tests/unit/unit.h"

#define PAGE 4096u

static uint8_t *gone; /* a page that cannot be read */
static int seen_by_first, seen_by_late;

static void make_readable(void)
{
	assert_int_equal(mprotect(gone, PAGE, PROT_READ | PROT_WRITE), 0);
}

/* Like the JVM's handler: it repairs the cause and returns. */
static void on_first(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	(void)context;
	seen_by_first++;
	make_readable();
}

/* Like Go's handler on Go's own threads: it takes every fault for its own and passes none on. */
static void on_late(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	(void)context;
	seen_by_late++;
	make_readable();
}

static void handle(int signo, void (*handler)(int, siginfo_t *, void *), struct sigaction *ret_old)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_flags = SA_SIGINFO;
	action.sa_sigaction = handler;
	assert_int_equal(sigaction(signo, &action, ret_old), 0);
}

static void *handler_of(int signo)
{
	struct sigaction now;

	assert_int_equal(sigaction(signo, NULL, &now), 0);
	return (void *)now.sa_sigaction;
}

static uint64_t load_gone(void)
{
	sigset_t none;

	assert_int_equal(mprotect(gone, PAGE, PROT_NONE), 0);
	sigemptyset(&none);
	assert_true(guard_begin_sig(&none));
	return guard_word_sig((uint64_t)(uintptr_t)gone);
}

/* Installed in the test itself, because cmocka installs handlers around every test and fixture. */
static void begin(void)
{
	gone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(gone != MAP_FAILED);
	memset(gone, 0x5a, PAGE);
	handle(SIGSEGV, on_first, NULL);
	handle(SIGBUS, on_first, NULL);
	seen_by_first = seen_by_late = 0;
	assert_int_equal(guard_init(true), 0);
}

static void end(void)
{
	munmap(gone, PAGE);
}

static void a_fault_of_a_guarded_load_is_ours_and_no_other(void **state)
{
	uint64_t before;

	(void)state;
	begin();
	before = guard_state_sig.faults;
	assert_int_equal(load_gone(), 0);
	assert_int_equal(guard_state_sig.faults, before + 1);
	assert_int_equal(seen_by_first, 0);
	assert_int_equal(*(volatile uint8_t *)gone, 0x5a);
	assert_int_equal(seen_by_first, 1);
	guard_deinit(true);
	assert_ptr_equal(handler_of(SIGSEGV), on_first);
	assert_ptr_equal(handler_of(SIGBUS), on_first);
	end();
}

static void behind_a_handler_that_came_later_nothing_faults(void **state)
{
	struct sigaction ours;

	(void)state;
	begin();
	handle(SIGSEGV, on_late, &ours);
	guard_refresh();
	assert_int_equal(load_gone(), 0);
	assert_int_equal(seen_by_late, 0);
	/* it leaves again */
	assert_int_equal(sigaction(SIGSEGV, &ours, NULL), 0);
	guard_refresh();
	assert_int_equal(load_gone(), 0);
	assert_int_equal(guard_state_sig.faults > 0, 1);
	guard_deinit(true);
	assert_ptr_equal(handler_of(SIGSEGV), on_first);
	end();
}

static void a_handler_in_front_at_the_end_stays(void **state)
{
	struct sigaction ours;

	(void)state;
	begin();
	handle(SIGSEGV, on_late, &ours);
	guard_deinit(true);
	assert_ptr_equal(handler_of(SIGSEGV), on_late);
	assert_ptr_equal(handler_of(SIGBUS), on_first);
	/* faults that it passes on to us reach the first handler */
	assert_int_equal(sigaction(SIGSEGV, &ours, NULL), 0);
	assert_int_equal(mprotect(gone, PAGE, PROT_NONE), 0);
	assert_int_equal(*(volatile uint8_t *)gone, 0x5a);
	assert_int_equal(seen_by_first, 1);
	/* and if we come back, our hook is in front and not chained twice */
	assert_int_equal(guard_init(true), 0);
	assert_int_equal(load_gone(), 0);
	guard_deinit(true);
	assert_ptr_equal(handler_of(SIGSEGV), on_first);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fault_of_a_guarded_load_is_ours_and_no_other),
		cmocka_unit_test(behind_a_handler_that_came_later_nothing_faults),
		cmocka_unit_test(a_handler_in_front_at_the_end_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
