/* To which user a delegated uid belongs, and that all such uids are one tenant. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/core/subuids.h"
#include "daemon/core/tenant.h"

static char dir[] = "/tmp/kindling-subuids-XXXXXX", file[64], passwd[64];

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/subuid", dir);
	snprintf(passwd, sizeof(passwd), "%s/passwd", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(file);
	unlink(passwd);
	return rmdir(dir);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int load(const char *text, const char *users)
{
	write_text(file, text);
	write_text(passwd, users);
	return subuids_load(file, passwd);
}

#define USERS                                     \
	"root:x:0:0:root:/root:/bin/bash\n"       \
	"ann:x:1000:1000:Ann:/home/ann:/bin/sh\n" \
	"annette:x:1002:1002::/home/a:/bin/sh\n"

static void a_delegated_uid_belongs_to_its_user(void **state)
{
	(void)state;
	assert_int_equal(
		load("annette:231072:65536\nann:100000:65536\nann:400000:10\n1001:165536:65536\n"
		     "ldap:500000:65536\n",
		     USERS),
		5);
	assert_int_equal(subuids_owner(100000), 1000);
	assert_int_equal(subuids_owner(165535), 1000);
	assert_int_equal(subuids_owner(165536), 1001);
	assert_int_equal(subuids_owner(231072), 1002);
	assert_int_equal(subuids_owner(400009), 1000);
	/* a user that only a directory service knows */
	assert_int_equal(subuids_owner(565535), 500000);
	for (size_t i = 0; i < 9; i++) {
		static const uint32_t own[] = { 0,	1000,	99999,	296608,	   400010,
						399999, 565536, 499999, UINT32_MAX };

		assert_int_equal(subuids_owner(own[i]), own[i]);
	}
}

static void delegated_uids_and_their_user_are_one_tenant(void **state)
{
	char a[TENANT_SIZE], b[TENANT_SIZE];

	(void)state;
	assert_int_equal(load("ann:100000:65536\n", USERS), 1);
	assert_string_equal(tenant_name(a, "", 100999), "uid-1000");
	assert_string_equal(tenant_name(b, NULL, 1000), a);
	assert_string_equal(tenant_name(b, "", 165536), "uid-165536");
	assert_string_equal(tenant_name(b, "0123abc", 100999), "0123abc");
}

static void lines_that_are_wrong_are_ignored(void **state)
{
	(void)state;
	assert_int_equal(
		load("\n:1:2\nann\nann:\nann:1\nann:x:5\nann:5:x\nann:-5:9\nann:0:65536\nann:7:0\n"
		     "ann:4294967295:2\nann:1:4294967295\nann:99999999999:1\nann:1:2:3\n# ann:1:2\n"
		     "ann:100000:65536",
		     USERS),
		2); /* "# ann" is not the name of any user */
	assert_int_equal(subuids_owner(100000), 1000);
	assert_int_equal(subuids_owner(7), 7);
}

static void loading_again_replaces_the_ranges(void **state)
{
	(void)state;
	assert_int_equal(load("ann:100000:65536\n", USERS), 1);
	assert_int_equal(load("ann:200000:65536\n", USERS), 1);
	assert_int_equal(subuids_owner(100000), 100000);
	assert_int_equal(subuids_owner(200000), 1000);
	assert_int_equal(unlink(passwd), 0);
	assert_int_equal(subuids_load(file, passwd), 1);
	assert_int_equal(subuids_owner(200001), 200000);
	assert_true(subuids_load(dir, passwd) < 0); /* unreadable: they stay */
	assert_int_equal(subuids_owner(200001), 200000);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(subuids_load(file, passwd), 0);
	assert_int_equal(subuids_owner(200001), 200001);
}

static void a_long_file_is_cut(void **state)
{
	FILE *f;

	(void)state;
	write_text(passwd, USERS);
	f = fopen(file, "w");
	assert_non_null(f);
	for (unsigned i = 0; i < SUBUIDS_MAX + 100; i++)
		fprintf(f, "ann:%u:10\n", 1000000 + 10 * i);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(subuids_load(file, passwd), SUBUIDS_MAX);
	assert_int_equal(subuids_owner(1000000), 1000);
	f = fopen(file, "w");
	assert_non_null(f);
	for (unsigned i = 0; i < SUBUIDS_FILE_SIZE / 8 + 100; i++)
		fputs("nothing\n", f);
	fputs("ann:5:10\n", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(subuids_load(file, passwd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delegated_uid_belongs_to_its_user),
		cmocka_unit_test(delegated_uids_and_their_user_are_one_tenant),
		cmocka_unit_test(lines_that_are_wrong_are_ignored),
		cmocka_unit_test(loading_again_replaces_the_ranges),
		cmocka_unit_test(a_long_file_is_cut),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
