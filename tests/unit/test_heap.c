#include "tests/unit/unit.h"
#include "daemon/core/heap.h"
#include "daemon/ground/confine.h"

#include <features.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define LARGE (1ul << 20)

/* After a large block is freed, glibc raises the size from which it uses mmap to that size. */
static void a_large_block_lies_apart_also_after_one_was_freed(void **state)
{
	(void)state;
#ifdef __GLIBC__
	if (CONFINE_SANITIZED) /* another malloc */
		skip();
	for (int i = 0; i < 3; i++) {
		size_t before = mallinfo2().hblks;
		void *volatile block = malloc(LARGE);

		assert_non_null(block);
		assert_int_equal(mallinfo2().hblks, before + 1);
		free(block);
		assert_int_equal(mallinfo2().hblks, before);
	}
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_large_block_lies_apart_also_after_one_was_freed),
	};

	heap_begin(HEAP_APART);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
