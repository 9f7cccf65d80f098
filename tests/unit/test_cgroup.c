#include "tests/unit/unit.h"
#include "daemon/ground/mem.h"
#include "daemon/discovery/container.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static const char *id_of(const char *cgroup)
{
	static char id[CONTAINER_ID_SIZE];

	if (!container_id_from_cgroup(cgroup, NULL, id))
		return "";
	return id;
}

static void every_runtimes_path_gives_the_id(void **state)
{
	static const char *const paths[] = {
		"0::/docker/" ID,
		"0::/system.slice/docker-" ID ".scope",
		"0::/mygroup/" ID,
		"0::/kubepods/burstable/pod1f2e-aa/" ID,
		"0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" ID ".scope",
		"0::/kubelet.slice/kubelet-kubepods.slice/x.slice/crio-" ID ".scope/container",
		"0::/kubepods-besteffort-pod1.slice:cri-containerd:" ID,
		"0::/machine.slice/libpod-" ID ".scope/container",
		/* in a pod the pod's id is one level above */
		"0::/libpod_parent/" ID2 "/libpod-" ID,
		"0::/ecs/task/" ID,
		"0::/../" ID, /* seen from a cgroup namespace */
		"0::/docker/" ID "/system.slice/tomcat.service", /* systemd inside */
		"12:pids:/docker/" ID "\n0::/\n",
		"4:memory:/agent/aa\n3:cpu,cpuacct:/\n1:name=systemd:/docker/" ID "\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (strcmp(id_of(paths[i]), ID) != 0)
			fail_msg("%s gives \"%s\"", paths[i], id_of(paths[i]));
}

static void the_innermost_of_nested_containers_wins(void **state)
{
	(void)state;
	assert_string_equal(id_of("0::/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/"
				  "cri-containerd-" ID ".scope"),
			    ID);
}

static void fargate_ids_are_known(void **state)
{
	(void)state;
	assert_string_equal(id_of("0::/ecs/x/0123456789abcdef0123456789abcdef-3012345678"),
			    "0123456789abcdef0123456789abcdef-3012345678");
}

static void a_user_slice_with_such_a_name_is_no_container(void **state)
{
	static const char *const paths[] = {
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" ID ".scope",
		"0::/user.slice/user-1000.slice/user@1000.service/" ID,
		"12:pids:/\n1:name=systemd:/user.slice/user-7.slice/user@7.service/libpod-" ID
		".scope\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (id_of(paths[i])[0])
			fail_msg("%s gives \"%s\"", paths[i], id_of(paths[i]));
	/* below a real container's group, groups are made by the container itself */
	assert_string_equal(id_of("0::/docker/" ID "/user.slice/user@0.service/" ID2), ID);
}

/* Is "b", or a group below it in the hierarchy "pids", found? */
static uid_t owner_of_b(void *userdata, const char *names, size_t names_len, const char *path,
			size_t len)
{
	(void)userdata;
	return names_len == 4 && !memcmp(names, "pids", 4) && len >= 4 && !memcmp(path, "/a/b", 4)
		       ? 1000
		       : 0;
}

static void below_a_group_that_is_not_roots_nothing_is_believed(void **state)
{
	const struct container_owner owner = { owner_of_b, NULL };
	char id[CONTAINER_ID_SIZE];

	(void)state;
	assert_false(container_id_from_cgroup("3:pids:/a/b/" ID "\n", &owner, id));
	assert_false(container_id_from_cgroup("3:pids:/a/b/c/" ID, &owner, id));
	assert_true(container_id_from_cgroup("3:pids:/a/" ID "/c", &owner, id));
	assert_true(container_id_from_cgroup("3:memory:/a/b/" ID, &owner, id));
	/* root made the group, although another user owns it: a user namespace */
	assert_true(container_id_from_cgroup("3:pids:/a/b-" ID, &owner, id));
	assert_string_equal(id, ID);
}

static void invalid_ids_are_no_containers(void **state)
{
	static const char *const paths[] = {
		"",
		"0::/",
		"0::/user.slice/user-0.slice/session-1.scope",
		"0::/system.slice/tomcat.service",
		"0::/agent/eaa0ff07caa19e0b65982dfe37fb9031", /* 32 digits alone */
		"0::/kubepods/pod0123456789abcdef0123456789abcdef", /* a static pod's */
		"0::/docker/" ID "0", /* 65 digits */
		"0::/x" ID,
		"0::/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		"0::/lxc.payload.c1",
		"0::/my-container",
		ID,
		"x:" ID,
		"0::/0123456789abcdef0123456789abcde-12",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (id_of(paths[i])[0])
			fail_msg("%s gives \"%s\"", paths[i], id_of(paths[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_runtimes_path_gives_the_id),
		cmocka_unit_test(the_innermost_of_nested_containers_wins),
		cmocka_unit_test(fargate_ids_are_known),
		cmocka_unit_test(a_user_slice_with_such_a_name_is_no_container),
		cmocka_unit_test(below_a_group_that_is_not_roots_nothing_is_believed),
		cmocka_unit_test(invalid_ids_are_no_containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
