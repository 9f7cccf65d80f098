#include "agent/events/lock_name.h"
#include "tests/unit/unit.h"

static const char *name_of(const char *class_name)
{
	static char name[80];

	lock_name(class_name, name, sizeof(name));
	return name;
}

static void a_sync_is_called_as_the_lock_that_it_is_part_of(void **state)
{
	(void)state;
	assert_string_equal(name_of("java/util/concurrent/locks/ReentrantLock$NonfairSync"),
			    "java/util/concurrent/locks/ReentrantLock");
	assert_string_equal(name_of("java/util/concurrent/CountDownLatch$Sync"),
			    "java/util/concurrent/CountDownLatch");
	assert_string_equal(name_of("app/Outer$Latch$Sync"), "app/Outer$Latch");
	assert_string_equal(name_of("java/util/concurrent/SynchronousQueue$TransferStack"),
			    "java/util/concurrent/SynchronousQueue");
	assert_string_equal(name_of("java/util/concurrent/CompletableFuture$Signaller"),
			    "java/util/concurrent/CompletableFuture");
}

static void every_other_class_keeps_its_name(void **state)
{
	static const char *const names[] = {
		"java/util/concurrent/FutureTask",
		"java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject",
		"java/util/concurrent/ThreadPoolExecutor$Worker",
		"app/Sync",
		"app/Sync$Part",
		"$Sync",
		"Sync",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(name_of(names[i]), names[i]);
}

static void a_name_that_does_not_fit_is_cut(void **state)
{
	char name[5];

	(void)state;
	lock_name("app/Lock$Sync", name, sizeof(name));
	assert_string_equal(name, "app/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sync_is_called_as_the_lock_that_it_is_part_of),
		cmocka_unit_test(every_other_class_keeps_its_name),
		cmocka_unit_test(a_name_that_does_not_fit_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
