/* Annotations of pods: the content of the files, and what an owner allows by them. */
#include "tests/unit/fake_proc.h"
#include <stdio.h>
#include <stdlib.h>
#include "daemon/discovery/container.h"
#include "daemon/discovery/notes.h"
#include "daemon/ground/mem.h"
#include "proto/wire.h"

#define ID	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SANDBOX "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID	"01234567-89ab-4cde-8f01-23456789abcd"
#define CPU	(1u << WIRE_EVENT_CPU)
#define LOCK	(1u << WIRE_EVENT_LOCK)

static struct notes *notes;
static struct allowed allowed;

static int set_up(void **state)
{
	(void)state;
	notes = calloc(1, sizeof(*notes));
	allowed = (struct allowed){ 0 };
	return notes ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(notes);
	return 0;
}

static void parse(void (*fn)(struct notes *, const char *, size_t), const char *text)
{
	set_up(NULL);
	fn(notes, text, strlen(text));
}

static void annotations_are_kept_but_for_the_runtimes_own(void **state)
{
	(void)state;
	tear_down(NULL);
	parse(notes_parse_bundle, "{\"annotations\":{\"io.kubernetes.cri.sandbox-uid\":\"" UID "\","
				  "\"team\":\"shop\",\"a key\":\"x\",\"n\":7,\"bad\":\"a\\nb=c\","
				  "\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\"}}");
	assert_string_equal(notes->list.text, "bad=a?b=c\nteam=shop\n");
	assert_string_equal(notes->pod_uid, UID);
}

static void a_uid_that_is_a_path_is_none(void **state)
{
	(void)state;
	tear_down(NULL);
	parse(notes_parse_bundle, "{\"annotations\":{\"io.kubernetes.cri.sandbox-uid\":\"../../x\","
				  "\"io.kubernetes.cri-o.SandboxID\":\"/etc\"}}");
	assert_string_equal(notes->pod_uid, "");
	assert_string_equal(notes->sandbox, "");
}

static void crio_has_labels_and_annotations_as_json_in_json(void **state)
{
	(void)state;
	tear_down(NULL);
	parse(notes_parse_bundle,
	      "{\"annotations\":{\"io.kubernetes.cri-o.SandboxID\":\"" SANDBOX "\","
	      "\"io.kubernetes.cri-o.Labels\":\"{\\\"app\\\":\\\"cart\\\"}\","
	      "\"io.kubernetes.cri-o.Annotations\":\"{\\\"kindling.io/events\\\":\\\"cpu\\\"}\"}}");
	assert_string_equal(notes->list.text, "app=cart\nkindling.io/events=cpu\n");
	assert_string_equal(notes->sandbox, SANDBOX);
	assert_int_equal(notes->allowed.events, CPU);
}

static void dockers_labels_are_notes_and_cri_dockerds_annotations(void **state)
{
	(void)state;
	tear_down(NULL);
	parse(notes_parse_docker,
	      "{\"Config\":{\"Labels\":{\"team\":\"a\",\"annotation.owner\":\"b\","
	      "\"annotation.io.kubernetes.container.hash\":\"c\","
	      "\"io.kubernetes.sandbox.id\":\"" SANDBOX "\"}}}");
	assert_string_equal(notes->list.text, "owner=b\nteam=a\n");
	assert_string_equal(notes->sandbox, SANDBOX);
}

static void the_downward_api_is_unquoted(void **state)
{
	(void)state;
	tear_down(NULL);
	parse(notes_parse_downward, "app=\"cart\"\nquoted=\"a \\\"b\\\" \\\\ c\"\n"
				    "none\nhex=\"\\x00\"\nopen=\"x\nkindling.io/profile=\"false\"");
	assert_string_equal(notes->list.text,
			    "app=cart\nkindling.io/profile=false\nquoted=a \"b\" \\ c\n");
	assert_true(notes->allowed.no);
	assert_string_equal(notes->allowed.no_word, "kindling.io/profile: false");
}

static void whatever_ends_anywhere_is_read_to_its_end(void **state)
{
	static const char text[] = "a=\"b\\\"\nc=\"d\\";

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		char *cut = strndup(text, len);

		notes_parse_downward(notes, cut, len);
		notes_parse_bundle(notes, cut, len);
		notes_parse_docker(notes, cut, len);
		free(cut);
	}
}

static void many_notes_stay_short_and_the_owners_words_count(void **state)
{
	char key[32], value[200];

	(void)state;
	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		notes_add(notes, key, value);
	}
	notes_add(notes, "kindling.io/profile", "no");
	assert_true(strlen(notes->list.text) < JVM_NOTES_SIZE);
	assert_true(notes->allowed.no);
}

/* ---- what is allowed ------------------------------------------------------------------------ */

static void anything_but_a_yes_is_a_no(void **state)
{
	static const char *const noes[] = { "false", "no", "0", "flase", " true" };
	static const char *const yeses[] = { "true", "True", "yes", "1", "on" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(noes); i++) {
		allowed = (struct allowed){ 0 };
		allowed_set_value(&allowed, "profile", noes[i], "x: ");
		assert_true(allowed.no && !allowed.yes);
	}
	for (size_t i = 0; i < ARRAY_SIZE(yeses); i++) {
		allowed = (struct allowed){ 0 };
		allowed_set_value(&allowed, "profile", yeses[i], "x: ");
		assert_true(allowed.yes && !allowed.no);
	}
	allowed = (struct allowed){ 0 };
	allowed_set_value(&allowed, "profile", "", "x: ");
	assert_false(allowed.yes || allowed.no);
}

static void said_twice_the_stricter_counts(void **state)
{
	struct allowed also = { 0 };

	(void)state;
	allowed_set_value(&allowed, "events", "cpu, LOCK", "a: ");
	assert_int_equal(allowed.events, CPU | LOCK);
	allowed_set_value(&also, "events", "lock,alloc", "b: ");
	allowed_set_value(&allowed, "interval", "20ms", "a: ");
	allowed_set_value(&also, "interval", "50ms", "b: ");
	allowed_set_value(&also, "profile", "no", "b: ");
	allowed_add(&allowed, &also);
	assert_int_equal(allowed.events, LOCK);
	assert_int_equal(allowed.interval_ns, 50000000);
	assert_string_equal(allowed.interval_word, "b: 50ms");
	assert_true(allowed.no);
	allowed_add(&allowed, &(struct allowed){ 0 });
	assert_int_equal(allowed.events, LOCK);
	assert_int_equal(allowed.interval_ns, 50000000);
}

static void invalid_values_are_kept_for_the_user(void **state)
{
	(void)state;
	allowed_set_value(&allowed, "events", "cpu,lokc", "e: ");
	assert_int_equal(allowed.events, CPU);
	assert_true(allowed.events_unknown);
	allowed_set_value(&allowed, "interval", "50", "i: ");
	assert_int_equal(allowed.interval_ns, 0);
	assert_string_equal(allowed.wrong, "i: 50");
	allowed_set_value(&allowed, "interval", "2h", "i: ");
	assert_true(allowed.interval_ns == ALLOWED_INTERVAL_MAX);
	allowed_set_value(&allowed, "colour", "red", "c: ");
	allowed_set_value(&allowed, "events", "", "e: ");
	assert_true(allowed.events_given && !allowed.events);
}

static void the_environments_first_entry_counts(void **state)
{
	static const char text[] = "A=1\0KINDLING_EVENTS=cpu\0KINDLING_EVENTS=lock\0"
				   "XKINDLING_ENABLE=1\0KINDLING_INTERVAL=1s";

	(void)state;
	allowed_read(&allowed, text, sizeof(text));
	assert_int_equal(allowed.events, CPU);
	assert_int_equal(allowed.interval_ns, 1000000000);
	assert_string_equal(allowed.events_word, "KINDLING_EVENTS=cpu");
	assert_false(allowed.yes);
}

/* ---- the host's files ----------------------------------------------------------------------- */

#define BUNDLE	"1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID "/config.json"
#define VOLUMES "1/root/var/lib/kubelet/pods/" UID "/volumes/kubernetes.io~"

static int proc_dfd;

static void describe(struct jvm *jvm)
{
	int pid_dfd;

	fake_file("1/root/etc/hostname", "host\n");
	fake_file("9/cgroup", "0::/kubepods/pod" UID "/" ID "\n");
	fake_link("9/ns/mnt", "mnt:[8]");
	pid_dfd = openat(proc_dfd, "9", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*jvm = (struct jvm){ .pid = 9 };
	container_describe(proc_dfd, pid_dfd, jvm);
	close(pid_dfd);
	close(proc_dfd);
	fake_remove("");
}

static void the_kubelets_files_have_labels_of_the_pod(void **state)
{
	struct jvm jvm;

	(void)state;
	proc_dfd = fake_open();
	fake_file(BUNDLE, "{\"annotations\":{\"io.kubernetes.cri.sandbox-uid\":\"" UID "\","
			  "\"io.kubernetes.cri.container-name\":\"app\"}}");
	fake_file(VOLUMES "downward-api/podinfo/labels", "app=\"cart\"\nteam=\"shop\"\n");
	fake_file(VOLUMES "projected/all/annotations", "kindling.io/interval=\"1s\"\n");
	fake_file(VOLUMES "projected/kube-api-access-x/token", "secret=\"x\"\n");
	describe(&jvm);
	assert_string_equal(jvm.notes, "app=cart\nkindling.io/interval=1s\nteam=shop\n");
	assert_string_equal(jvm.noted_service, "cart");
	assert_int_equal(jvm.allowed.interval_ns, 1000000000);
}

static void crios_sandbox_has_what_the_container_has_not(void **state)
{
	struct jvm jvm;

	(void)state;
	proc_dfd = fake_open();
	fake_file("1/root/run/containers/storage/overlay-containers/" ID "/userdata/config.json",
		  "{\"annotations\":{\"io.kubernetes.cri-o.SandboxID\":\"" SANDBOX "\"}}");
	fake_file(
		"1/root/run/containers/storage/overlay-containers/" SANDBOX "/userdata/config.json",
		"{\"annotations\":{\"io.kubernetes.cri-o.Labels\":\"{\\\"team\\\":\\\"shop\\\"}\"}}");
	describe(&jvm);
	assert_string_equal(jvm.notes, "team=shop\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		T(annotations_are_kept_but_for_the_runtimes_own),
		T(a_uid_that_is_a_path_is_none),
		T(crio_has_labels_and_annotations_as_json_in_json),
		T(dockers_labels_are_notes_and_cri_dockerds_annotations),
		T(the_downward_api_is_unquoted),
		T(whatever_ends_anywhere_is_read_to_its_end),
		T(many_notes_stay_short_and_the_owners_words_count),
		T(anything_but_a_yes_is_a_no),
		T(said_twice_the_stricter_counts),
		T(invalid_values_are_kept_for_the_user),
		T(the_environments_first_entry_counts),
		T(the_kubelets_files_have_labels_of_the_pod),
		T(crios_sandbox_has_what_the_container_has_not),
#undef T
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
