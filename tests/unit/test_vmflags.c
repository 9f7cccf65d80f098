/* Flags and classes of a made-up libjvm.so that is mapped into this very process. */
#include "tests/unit/unit.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "injector/vmclasses.h"
#include "injector/vmflags.h"
#include "injector/vmmemory.h"

static void *library;
static struct inject in;

static int setup(void **state)
{
	(void)state;
	library = dlopen(FAKE_LIBJVM, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	in = (struct inject)INJECT_NULL;
	in.proc_dfd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(in.proc_dfd >= 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vmmemory_close(&in);
	close(in.proc_dfd);
	return dlclose(library);
}

static void values_are_those_in_memory(void **state)
{
	struct vmflag flags[] = {
		{ "DisableAttachMechanism", 1, false, 0 },
		{ "EnableDynamicAgentLoading", 1, false, 7 },
		{ "CRaCCheckpointTo", 8, false, 0 },
		{ "NowhereInMemory", 8, false, 0 },
		{ "NotThere", 1, false, 0 },
	};

	(void)state;
	assert_int_equal(vmflags_read(&in, flags, ARRAY_SIZE(flags)), 0);
	assert_true(flags[0].found && flags[0].value == 1);
	assert_true(flags[1].found);
	assert_int_equal(flags[1].value & 0xff, 0);
	assert_true(flags[2].found && flags[2].value != 0);
	assert_false(flags[3].found);
	assert_false(flags[4].found);
	*(bool *)dlsym(library, "disable_attach") = false;
	assert_int_equal(vmflags_read(&in, flags, 1), 0);
	assert_int_equal(flags[0].value, 0);
	*(bool *)dlsym(library, "disable_attach") = true;
}

/* Tables with wrong contents: no endless loop, and none of their addresses is accessed. */
/* As in another attempt: nothing is cached. */
static int read_anew(struct vmflag *flag)
{
	vmmemory_close(&in);
	return vmflags_read(&in, flag, 1);
}

static void a_lying_table_gives_nothing(void **state)
{
	struct vmflag flag = { "DisableAttachMechanism", 1, false, 0 };
	uint64_t *stride = dlsym(library, "gHotSpotVMStructEntryArrayStride");
	uint64_t *count = dlsym(library, "num_flags");
	void **flags = dlsym(library, "flags"), *real_flags = *flags;
	uint64_t real_stride = *stride, real_count = *count;

	(void)state;
	*stride = 0;
	assert_true(read_anew(&flag) < 0);
	*stride = UINT64_MAX - 7;
	assert_true(read_anew(&flag) < 0);
	*stride = real_stride;
	*count = UINT64_MAX;
	assert_true(read_anew(&flag) < 0);
	*count = real_count;
	*flags = (void *)0xdead0000;
	assert_int_equal(read_anew(&flag), 0);
	assert_false(flag.found);
	*flags = real_flags;
}

static void the_version_is_that_in_memory(void **state)
{
	struct jdk_version v = { 0, 0 };
	int32_t *minor = dlsym(library, "vm_minor");

	(void)state;
	*minor = 0;
	assert_int_equal(vmflags_version(&in, &v), 0);
	assert_int_equal(v.feature, 25);
	assert_int_equal(v.update, 3);
}

static void a_text_is_read_where_there_is_one(void **state)
{
	char text[16] = "before";

	(void)state;
	assert_int_equal(vmflags_text(&in, "CRaCCheckpointTo", text, sizeof(text)), 0);
	assert_string_equal(text, "/tmp/image");
	assert_int_equal(vmflags_text(&in, "CRaCCheckpointTo", text, 5), 0);
	assert_string_equal(text, "/tmp");
	assert_int_equal(vmflags_text(&in, "NotThere", text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void virtual_threads_are_in_use_once_their_class_is(void **state)
{
	struct fake_klass {
		void *table, *name;
		uint8_t init_state;
	} *klass = dlsym(library, "virtual_thread");
	void **classes = dlsym(library, "classes"), *first = classes[0];

	(void)state;
	assert_int_equal(vmclasses_virtual_threads(&in), 0);
	klass->init_state = 4;
	assert_int_equal(vmclasses_virtual_threads(&in), 1);
	classes[0] = (void *)0xdead0000;
	vmmemory_close(&in);
	assert_int_equal(vmclasses_virtual_threads(&in), 1);
	classes[3] = NULL;
	vmmemory_close(&in);
	assert_int_equal(vmclasses_virtual_threads(&in), 0);
	classes[3] = klass;
	classes[0] = first;
	klass->init_state = 1;
}

static void a_text_across_two_pages_is_read_and_one_that_ends_nowhere_is_not(void **state)
{
	char *pages = mmap(NULL, 2 * VMMEMORY_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = pages + VMMEMORY_PAGE - 4, copy[9];
	uint64_t at = (uintptr_t)text;
	struct vmmemory *m;

	(void)state;
	assert_true(pages != MAP_FAILED);
	strcpy(text, "JVMFlags");
	assert_int_equal(vmmemory_of(&in, &m), 0);
	assert_true(vmmemory_is(m, at, "JVMFlags"));
	assert_false(vmmemory_is(m, at, "JVMFlag"));
	assert_false(vmmemory_is(m, at, "JVMFlagses"));
	assert_true(vmmemory_read(m, at, copy, sizeof(copy)));
	assert_string_equal(copy, "JVMFlags");
	text[0] = 'X'; /* its page is cached, but a value is read each time */
	assert_true(vmmemory_is(m, at, "JVMFlags"));
	assert_true(vmmemory_read_now(m, at, copy, 1));
	assert_int_equal(copy[0], 'X');
	vmmemory_close(&in);
	assert_int_equal(munmap(pages + VMMEMORY_PAGE, VMMEMORY_PAGE), 0);
	assert_int_equal(vmmemory_of(&in, &m), 0);
	assert_false(vmmemory_is(m, at, "XVMFlags"));
	assert_false(vmmemory_read(m, at, copy, sizeof(copy)));
	assert_true(vmmemory_read(m, at, copy, 4));
	assert_int_equal(munmap(pages, VMMEMORY_PAGE), 0);
}

static void a_process_without_libjvm_has_no_flags(void **state)
{
	struct vmflag flag = { "DisableAttachMechanism", 1, false, 0 };

	(void)state;
	in = (struct inject)INJECT_NULL;
	in.proc_dfd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(vmflags_read(&in, &flag, 1) < 0);
	assert_true(vmclasses_virtual_threads(&in) < 0);
	close(in.proc_dfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_those_in_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lying_table_gives_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(the_version_is_that_in_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(a_text_is_read_where_there_is_one, setup, teardown),
		cmocka_unit_test_setup_teardown(virtual_threads_are_in_use_once_their_class_is,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_text_across_two_pages_is_read_and_one_that_ends_nowhere_is_not, setup,
			teardown),
		cmocka_unit_test(a_process_without_libjvm_has_no_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
