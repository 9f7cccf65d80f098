#include "tests/unit/fake_proc.h"
#include "daemon/ground/mem.h"
#include "daemon/discovery/container.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int proc_dfd, pid_dfd;
static struct jvm jvm;

/* Process 9 is in a pid namespace of its own, whose first process is 8. */
static int set_up(void **state)
{
	(void)state;
	proc_dfd = fake_open();
	fake_file("1/root/etc/hostname", "host\n");
	fake_link("1/ns/pid", "pid:[1]");
	fake_link("1/ns/mnt", "mnt:[1]");
	fake_link("8/ns/pid", "pid:[8]");
	fake_link("9/ns/pid", "pid:[8]");
	fake_link("9/ns/mnt", "mnt:[8]");
	fake_file("9/cgroup", "0::/docker/" ID "\n");
	pid_dfd = openat(proc_dfd, "9", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	jvm = (struct jvm){ .pid = 9 };
	return pid_dfd < 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(pid_dfd);
	close(proc_dfd);
	fake_remove("");
	return 0;
}

static void expect_names(const char *container, const char *pod, const char *image)
{
	container_describe(proc_dfd, pid_dfd, &jvm);
	assert_string_equal(jvm.container, container);
	assert_string_equal(jvm.pod, pod);
	assert_string_equal(jvm.image, image);
}

static void expect_digest(const char *digest)
{
	container_describe(proc_dfd, pid_dfd, &jvm);
	assert_string_equal(jvm.image_digest, digest);
}

static void the_digest_is_taken_from_the_runtimes_files(void **state)
{
	static const char crio[] =
		"1/root/run/containers/storage/overlay-containers/" ID "/userdata/config.json";

	(void)state;
	fake_file("1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		  "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"shop\","
		  "\"io.kubernetes.cri.image-name\":\"reg/shop@sha256:" ID "\"}}");
	expect_digest("sha256:" ID);
	fake_remove("1/root/run");
	fake_file(crio, "{\"annotations\":{\"io.kubernetes.container.name\":\"shop\","
			"\"io.kubernetes.cri-o.ImageName\":\"reg/shop:1\","
			"\"io.kubernetes.cri-o.ImageRef\":\"" ID "\"}}");
	expect_digest("sha256:" ID);
	fake_remove("1/root/run");
	fake_file("1/root/var/lib/docker/containers/" ID "/config.v2.json",
		  "{\"Name\":\"/web\",\"Image\":\"sha256:" ID
		  "\",\"Config\":{\"Image\":\"tomcat:9\"}}");
	expect_digest("sha256:" ID);
	fake_remove("1/root/var");
	fake_file("1/root/var/lib/containers/storage/overlay-containers/containers.json",
		  "[{\"id\":\"" ID "\",\"names\":[\"db\"],\"image\":\"" ID "\"}]");
	expect_digest("sha256:" ID);
}

static void notes_and_labels_say_which_service_it_is(void **state)
{
	(void)state;
	fake_file("1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		  "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"app\","
		  "\"app.kubernetes.io/name\":\"cart\",\"app.kubernetes.io/version\":\"7\","
		  "\"resource.opentelemetry.io/service.name\":\"shop\"}}");
	container_describe(proc_dfd, pid_dfd, &jvm);
	assert_string_equal(jvm.noted_service, "shop");
	assert_string_equal(jvm.noted_version, "7");
	fake_remove("1/root/run");
	fake_file("1/root/var/lib/docker/containers/" ID "/config.v2.json",
		  "{\"Name\":\"/proj-web-1\",\"Config\":{\"Labels\":{"
		  "\"com.docker.compose.service\":\"we\\u001bb\"}}}");
	container_describe(proc_dfd, pid_dfd, &jvm);
	assert_string_equal(jvm.noted_service, "we?b");
}

static void invalid_digests_are_ignored(void **state)
{
	static const char *const texts[] = { "sha256:1", "sha256:" ID "0", "SHA256:" ID,
					     "reg/shop:1", "sha256:\\u0000" ID };
	char text[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		snprintf(text, sizeof(text), "{\"Name\":\"/web\",\"Image\":\"%s\",\"Config\":{}}",
			 texts[i]);
		fake_file("1/root/var/lib/docker/containers/" ID "/config.v2.json", text);
		expect_digest("");
	}
}

/* In the host's cgroupfs the owner of a group may make groups in it. */
static void a_container_is_not_believed_in_a_group_of_a_users(void **state)
{
	char path[512];

	(void)state;
	fake_file("9/cgroup", "0::/system.slice/own.service/docker-" ID ".scope\n");
	fake_file("1/root/sys/fs/cgroup/system.slice/own.service/docker-" ID ".scope/cgroup.procs",
		  "9\n");
	container_describe(proc_dfd, pid_dfd, &jvm);
	assert_string_equal(jvm.container_id, geteuid() ? "" : ID);
	if (geteuid())
		return; /* the whole made-up tree belongs to this test's user, not to root */
	snprintf(path, sizeof(path), "%s/1/root/sys/fs/cgroup/system.slice/own.service", fake_root);
	assert_int_equal(chown(path, 1000, 1000), 0);
	container_describe(proc_dfd, pid_dfd, &jvm);
	assert_string_equal(jvm.container_id, "");
}

static void containerd_names_pod_and_container(void **state)
{
	(void)state;
	fake_file("1/root/run/containerd/io.containerd.runtime.v2.task/default/x/config.json",
		  "{}");
	fake_file("1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json",
		  "{\"annotations\":{\"io.kubernetes.cri.container-name\":\"shop\","
		  "\"io.kubernetes.cri.sandbox-name\":\"shop-7d4-x\","
		  "\"io.kubernetes.cri.sandbox-namespace\":\"prod\","
		  "\"io.kubernetes.cri.image-name\":\"reg/shop:1\"}}");
	expect_names("shop", "prod/shop-7d4-x", "reg/shop:1");
	assert_string_equal(jvm.container_id, ID);
}

static void crio_names_pod_and_container(void **state)
{
	(void)state;
	fake_file("1/root/run/containers/storage/overlay-containers/" ID "/userdata/config.json",
		  "{\"annotations\":{\"io.kubernetes.container.name\":\"shop\","
		  "\"io.kubernetes.pod.name\":\"p\",\"io.kubernetes.pod.namespace\":\"n\","
		  "\"io.kubernetes.cri-o.ImageName\":\"i\"}}");
	expect_names("shop", "n/p", "i");
}

static void docker_names_the_container(void **state)
{
	(void)state;
	/* the runtime's directory was moved: the link to it is absolute in the host's root, not
	 * in the daemon's */
	fake_link("1/root/var/lib/docker", "/data/docker");
	fake_file("1/root/data/docker/containers/" ID "/config.v2.json",
		  "{\"Name\":\"/web_1\",\"Config\":{\"Image\":\"tomcat:9\",\"Labels\":{}}}");
	expect_names("web_1", "", "tomcat:9");
}

static void docker_under_kubernetes_names_the_pod(void **state)
{
	(void)state;
	fake_file("1/root/var/lib/docker/containers/" ID "/config.v2.json",
		  "{\"Name\":\"/k8s_shop_p_n_0\",\"Config\":{\"Image\":\"sha256:1\",\"Labels\":{"
		  "\"io.kubernetes.pod.name\":\"p\",\"io.kubernetes.pod.namespace\":\"n\","
		  "\"io.kubernetes.container.name\":\"shop\"}}}");
	expect_names("shop", "n/p", "sha256:1");
}

static void podman_names_the_container_in_its_list(void **state)
{
	(void)state;
	fake_file("1/root/var/lib/containers/storage/overlay-containers/containers.json",
		  "[{\"id\":\"ff\",\"names\":[\"other\"]},{\"id\":\"" ID "\",\"names\":[\"db\"],"
		  "\"metadata\":\"{\\\"image-name\\\":\\\"img\\\"}\"}]");
	expect_names("db", "", "img");
}

static void a_bundle_of_runc_is_found_by_its_first_process(void **state)
{
	(void)state;
	fake_file("9/cgroup", "0::/shop\n");
	fake_file("1/root/run/runc/other/state.json", "{\"init_process_pid\":77}");
	fake_file("1/root/run/runc/shop/state.json", "{\"id\":\"shop\",\"init_process_pid\":9}");
	expect_names("shop", "", "");
	assert_string_equal(jvm.container_id, "");
	/* a JVM that is a child of the container's init: the same pid namespace */
	fake_file("1/root/run/runc/shop/state.json", "{\"id\":\"shop\",\"init_process_pid\":8}");
	expect_names("shop", "", "");
}

static void a_bundle_of_crun_is_found_by_its_first_process(void **state)
{
	(void)state;
	fake_file("9/cgroup", "0::/\n");
	fake_file("1/root/run/crun/web/status", "{\"pid\":8,\"bundle\":\"/b\"}");
	expect_names("web", "", "");
}

static void a_process_of_the_host_belongs_to_no_bundle(void **state)
{
	(void)state;
	fake_file("9/cgroup", "0::/user.slice\n");
	fake_link("9/ns/pid", "pid:[1]");
	/* the bundle of a container in the host's pid namespace */
	fake_link("8/ns/pid", "pid:[1]");
	fake_file("1/root/run/runc/x/state.json", "{\"init_process_pid\":8}");
	expect_names("", "", "");
	fake_link("9/ns/mnt", "mnt:[1]");
	fake_file("1/root/run/runc/x/state.json", "{\"init_process_pid\":9}");
	expect_names("", "", ""); /* not even asked */
}

static void broken_files_give_no_names(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"null",
		"{\"annotations\":7}",
		"{\"annotations\":{\"a\":{}}}",
		"{\"annotations\":{\"io.kubernetes.cri.container-name\":[1]}}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fake_file("1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID
			  "/config.json",
			  texts[i]);
		fake_file("1/root/var/lib/docker/containers/" ID "/config.v2.json", texts[i]);
		fake_file("1/root/var/lib/containers/storage/overlay-containers/containers.json",
			  texts[i]);
		fake_file("1/root/run/runc/x/state.json", texts[i]);
		expect_names("", "", "");
	}
	assert_int_equal(container_parse_state("{\"pid\":-1}", 10), 0);
	assert_int_equal(container_parse_state("{\"pid\":1e99}", 12), 0);
}

static void a_link_out_of_the_hosts_root_stays_inside(void **state)
{
	(void)state;
	fake_file("outside.json", "{\"Name\":\"/leaked\"}");
	fake_link("1/root/var/lib/docker/containers/" ID "/config.v2.json",
		  "../../../../../../../outside.json");
	expect_names("", "", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_container_is_not_believed_in_a_group_of_a_users),
		TEST(containerd_names_pod_and_container),
		TEST(the_digest_is_taken_from_the_runtimes_files),
		TEST(notes_and_labels_say_which_service_it_is),
		TEST(invalid_digests_are_ignored),
		TEST(crio_names_pod_and_container),
		TEST(docker_names_the_container),
		TEST(docker_under_kubernetes_names_the_pod),
		TEST(podman_names_the_container_in_its_list),
		TEST(a_bundle_of_runc_is_found_by_its_first_process),
		TEST(a_bundle_of_crun_is_found_by_its_first_process),
		TEST(a_process_of_the_host_belongs_to_no_bundle),
		TEST(broken_files_give_no_names),
		TEST(a_link_out_of_the_hosts_root_stays_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
