/*
 * Names from the container runtime: the request, the frames and the message of the answer, the
 * resulting labels, and kindling-names with runtimes that answer, hang, close the connection or
 * send garbage.
 */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cri.pb-c.h"
#include "daemon/core/warden_priv.h"
#include "daemon/ground/clock.h"
#include "daemon/names/again.h"
#include "daemon/names/cri.h"
#include "daemon/names/frames.h"
#include "daemon/names/names.h"
#include "proto/wire.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define HEX "1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a"

/* ---- the question ---------------------------------------------------------------------------- */

static void only_ids_are_asked_about(void **state)
{
	uint8_t words[WARDEN_NAMES_REQUEST_MAX];
	char longer[80] = ID "0";

	(void)state;
	assert_int_equal(warden_names_request(WARDEN_NAMES_CONTAINER, "", words), 0);
	assert_int_equal(warden_names_request(WARDEN_NAMES_CONTAINER, "abc\r\n", words), 0);
	assert_int_equal(warden_names_request(WARDEN_NAMES_CONTAINER, "../x", words), 0);
	assert_int_equal(warden_names_request(WARDEN_NAMES_CONTAINER, longer, words), 0);
	assert_int_equal(warden_names_request(WARDEN_NAMES_COUNT, ID, words), 0);
	assert_int_equal(warden_work_names("/nowhere", WARDEN_NAMES_CONTAINER, "x y", 1), -EINVAL);
}

static void the_question_is_whole_frames_and_ends_the_stream(void **state)
{
	uint8_t words[WARDEN_NAMES_REQUEST_MAX];
	size_t len = warden_names_request(WARDEN_NAMES_SANDBOX, ID, words), at = 24, n = 0;
	unsigned type = 0, flags = 0;

	(void)state;
	assert_memory_equal(words, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	for (; at + 9 <= len; n++) {
		type = words[at + 3];
		flags = words[at + 4];
		at += 9 + ((size_t)words[at] << 16 | (size_t)words[at + 1] << 8 | words[at + 2]);
	}
	assert_int_equal(at, len);
	assert_int_equal(n, 4);
	assert_int_equal(type, 0);
	assert_int_equal(flags, 1);
	assert_memory_equal(words + len - 64, ID, 64);
}

/* ---- the frames ------------------------------------------------------------------------------ */

struct made {
	uint8_t bytes[4096];
	size_t len;
};

static void add_frame(struct made *m, unsigned type, unsigned flags, uint32_t stream,
		      const void *payload, size_t len)
{
	uint8_t head[9] = { 0, (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)type, (uint8_t)flags };

	stream = htonl(stream);
	memcpy(head + 5, &stream, 4);
	memcpy(m->bytes + m->len, head, sizeof(head));
	memcpy(m->bytes + m->len + sizeof(head), payload, len);
	m->len += sizeof(head) + len;
}

/* The server's SETTINGS, headers, and the message in DATA frames of @part bytes. */
static void make_answer(struct made *m, const uint8_t *message, size_t len, size_t part)
{
	uint8_t body[2048] = { 0 };
	uint32_t n = htonl((uint32_t)len);

	m->len = 0;
	memcpy(body + 1, &n, 4);
	memcpy(body + 5, message, len);
	add_frame(m, 4, 0, 0, "", 0);
	add_frame(m, 4, 1, 0, "", 0);
	add_frame(m, 6, 0, 0, "12345678", 8);
	add_frame(m, 1, 4, 1, "\x88", 1);
	for (size_t at = 0; at < len + 5; at += part)
		add_frame(m, 0, 0, 1, body + at, len + 5 - at < part ? len + 5 - at : part);
	add_frame(m, 1, 5, 1, "\x88", 1);
}

static int read_frames(const struct made *m, size_t len, uint8_t *body, size_t *ret_len)
{
	return frames_read(m->bytes, len, body, ret_len);
}

static void an_answer_may_come_in_any_pieces(void **state)
{
	uint8_t body[4096], message[300];
	struct made m;
	size_t len = 0, first = 0;

	(void)state;
	memset(message, 'x', sizeof(message));
	make_answer(&m, message, sizeof(message), 77);
	for (size_t n = 0; n <= m.len; n++) {
		int r = read_frames(&m, n, body, &len);

		assert_in_range(r, 0, 1);
		if (r == 1 && !first)
			first = n;
		assert_true(r == 1 || !first);
	}
	assert_true(first > 300);
	assert_int_equal(len, sizeof(message));
	assert_memory_equal(body + FRAMES_HEAD, message, len);
}

static void padding_is_left_out(void **state)
{
	uint8_t body[4096];
	struct made m = { .len = 0 };
	size_t len = 0;

	(void)state;
	add_frame(&m, 4, 0, 0, "", 0);
	add_frame(&m, 0, 8, 1, "\3\0\0\0\0\1aPAD", 10);
	assert_int_equal(read_frames(&m, m.len, body, &len), 1);
	assert_int_equal(len, 1);
	assert_int_equal(body[FRAMES_HEAD], 'a');
}

static int result_of(unsigned type, unsigned flags, uint32_t stream, const void *payload, size_t n)
{
	uint8_t body[4096];
	struct made m = { .len = 0 };
	size_t len;

	add_frame(&m, 4, 0, 0, "", 0);
	add_frame(&m, type, flags, stream, payload, n);
	return read_frames(&m, m.len, body, &len);
}

static void invalid_answers_are_errors(void **state)
{
	uint8_t body[64];
	size_t len;

	(void)state;
	assert_int_equal(
		frames_read((const uint8_t *)"HTTP/1.1 400 Bad Request\r\n\r\n", 28, body, &len),
		-EPROTO);
	assert_int_equal(result_of(1, 5, 1, "\x88", 1), -EREMOTEIO); /* trailers alone */
	assert_int_equal(result_of(3, 0, 1, "\0\0\0\1", 4), -ECONNRESET);
	assert_int_equal(result_of(7, 0, 0, "\0\0\0\0\0\0\0\1", 8), -ECONNRESET);
	assert_int_equal(result_of(7, 0, 0, "\0\0\0\0\0\0\0\0", 8), 0);
	assert_int_equal(result_of(0, 0, 1, "\1\0\0\0\1a", 6), -EPROTO); /* compressed */
	assert_int_equal(result_of(0, 0, 1, "\0\0\0\0\1ab", 7), -EPROTO); /* two of them */
	assert_int_equal(result_of(0, 1, 1, "\0\0\0\0\2a", 6), -EPROTO); /* cut off */
	assert_int_equal(result_of(0, 8, 1, "\7\0", 2), -EPROTO); /* more padding than frame */
	assert_int_equal(result_of(0, 0, 3, "\1\0\0\0\1a", 6), 0); /* another stream's */
}

/* ---- the message ----------------------------------------------------------------------------- */

static size_t pack_container(uint8_t *to, const char *image, const char *wanted, const char *ref)
{
	Kindling__Cri__Entry label = KINDLING__CRI__ENTRY__INIT, note = KINDLING__CRI__ENTRY__INIT;
	Kindling__Cri__Entry *labels[] = { &label }, *notes[] = { &note };
	Kindling__Cri__ContainerMetadata metadata = KINDLING__CRI__CONTAINER_METADATA__INIT;
	Kindling__Cri__ImageSpec spec = KINDLING__CRI__IMAGE_SPEC__INIT;
	Kindling__Cri__Container c = KINDLING__CRI__CONTAINER__INIT, *list[] = { &c };
	Kindling__Cri__ListContainersResponse m = KINDLING__CRI__LIST_CONTAINERS_RESPONSE__INIT;
	static char words[][40] = { "io.kubernetes.container.name", "cart", "tier", "front",
				    "cart" };

	label.key = words[0];
	label.value = words[1];
	note.key = words[2];
	note.value = words[3];
	metadata.name = words[4];
	spec.image = (char *)(uintptr_t)image;
	spec.user_specified_image = (char *)(uintptr_t)wanted;
	c.id = (char *)(uintptr_t)ID;
	c.pod_sandbox_id = (char *)(uintptr_t)POD;
	c.metadata = &metadata;
	c.image = &spec;
	c.image_ref = (char *)(uintptr_t)ref;
	c.labels = labels;
	c.annotations = notes;
	c.n_labels = c.n_annotations = 1;
	m.containers = list;
	m.n_containers = 1;
	return kindling__cri__list_containers_response__pack(&m, to);
}

static size_t pack_sandbox(uint8_t *to)
{
	static char words[][40] = {
		"kindling.io/profile", "false", "app", "checkout", "cart-0", "shop"
	};
	Kindling__Cri__Entry no = KINDLING__CRI__ENTRY__INIT, app = KINDLING__CRI__ENTRY__INIT;
	Kindling__Cri__Entry *labels[] = { &no, &app };
	Kindling__Cri__PodSandboxMetadata metadata = KINDLING__CRI__POD_SANDBOX_METADATA__INIT;
	Kindling__Cri__PodSandbox s = KINDLING__CRI__POD_SANDBOX__INIT, *list[] = { &s };
	Kindling__Cri__ListPodSandboxResponse m = KINDLING__CRI__LIST_POD_SANDBOX_RESPONSE__INIT;

	no.key = words[0];
	no.value = words[1];
	app.key = words[2];
	app.value = words[3];
	metadata.name = words[4];
	metadata.namespace_ = words[5];
	s.id = (char *)(uintptr_t)POD;
	s.metadata = &metadata;
	s.labels = labels;
	s.n_labels = 2;
	m.items = list;
	m.n_items = 1;
	return kindling__cri__list_pod_sandbox_response__pack(&m, to);
}

static void a_container_is_read(void **state)
{
	static struct names_answer a;
	uint8_t message[1024];
	size_t len = pack_container(message, "sha256:" HEX, "reg/cart:1.2", "sha256:" HEX);

	(void)state;
	memset(&a, 0, sizeof(a));
	cri_read(WARDEN_NAMES_CONTAINER, message, len, &a);
	assert_int_equal(a.result, 0);
	assert_string_equal(a.sandbox, POD);
	assert_string_equal(a.jvm.container, "cart");
	assert_string_equal(a.jvm.image, "reg/cart:1.2");
	assert_string_equal(a.jvm.image_digest, "sha256:" HEX);
	assert_string_equal(a.jvm.notes, "tier=front\n");
	memset(&a, 0, sizeof(a));
	len = pack_container(message, "sha256:" HEX, "", "reg/cart:1.2");
	cri_read(WARDEN_NAMES_CONTAINER, message, len, &a);
	assert_string_equal(a.jvm.image, "");
	assert_string_equal(a.jvm.image_digest, "");
	memset(&a, 0, sizeof(a));
	len = pack_container(message, "reg/cart:3", "", HEX); /* as CRI-O has it */
	cri_read(WARDEN_NAMES_CONTAINER, message, len, &a);
	assert_string_equal(a.jvm.image, "reg/cart:3");
	assert_string_equal(a.jvm.image_digest, "sha256:" HEX);
}

static void a_pod_is_read_and_an_unknown_one_is_none(void **state)
{
	static struct names_answer a;
	uint8_t message[1024];
	size_t len = pack_sandbox(message);

	(void)state;
	memset(&a, 0, sizeof(a));
	cri_read(WARDEN_NAMES_SANDBOX, message, len, &a);
	assert_int_equal(a.result, 0);
	assert_string_equal(a.jvm.pod, "shop/cart-0");
	assert_true(a.jvm.allowed.no);
	cri_read(WARDEN_NAMES_SANDBOX, message, 0, &a);
	assert_int_equal(a.result, -ENOENT);
	cri_read(WARDEN_NAMES_CONTAINER, message, 0, &a);
	assert_int_equal(a.result, -ENOENT);
	cri_read(WARDEN_NAMES_CONTAINER, (const uint8_t *)"\xff\xff", 2, &a);
	assert_int_equal(a.result, -EPROTO);
}

static void files_have_precedence_and_the_stricter_limit_counts(void **state)
{
	static struct jvm jvm, said;

	(void)state;
	memset(&jvm, 0, sizeof(jvm));
	memset(&said, 0, sizeof(said));
	strcpy(jvm.container, "cart");
	strcpy(jvm.notes, "kindling.io/events=cpu,lock\nteam=shop\n");
	strcpy(said.container, "other");
	strcpy(said.pod, "shop/cart-0");
	strcpy(said.notes, "app=checkout\nkindling.io/events=cpu,alloc\nteam=bank\n");
	names_add(&jvm, &said);
	assert_string_equal(jvm.container, "cart");
	assert_string_equal(jvm.pod, "shop/cart-0");
	assert_string_equal(jvm.notes, "app=checkout\nkindling.io/events=cpu,lock\nteam=shop\n");
	assert_string_equal(jvm.noted_service, "checkout");
	assert_int_equal(jvm.allowed.events, 1u << WIRE_EVENT_CPU);
}

/* ---- kindling-names -------------------------------------------------------------------------- */

enum runtime { ANSWERS, KNOWS_NOBODY, HANGS, HANGS_UP, TALKS_NONSENSE, REFUSES };

struct node {
	char dir[64], path[100];
	pid_t runtime;
	struct loop *loop;
	struct names *names;
	unsigned named, later;
	bool dead; /* none of the containers has a JVM any more */
	struct jvm last, last_later;
};

/* Answers one request after the other; the path tells which method it calls. */
static void answer_one(int fd, enum runtime how)
{
	uint8_t asked[1024], message[1024];
	struct made m = { .len = 0 };
	ssize_t n = read(fd, asked, sizeof(asked));
	size_t len;

	assert_true(n > 64);
	if (how == HANGS) {
		pause();
	} else if (how == TALKS_NONSENSE) {
		n = write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
	} else if (how == REFUSES) {
		add_frame(&m, 4, 0, 0, "", 0);
		add_frame(&m, 1, 5, 1, "\x88", 1);
		n = write(fd, m.bytes, m.len);
	} else if (how != HANGS_UP) {
		len = how == KNOWS_NOBODY ? 0
		      : memmem(asked, (size_t)n, "ListContainers", 14)
			      ? pack_container(message, "reg/cart:1.2", "", "")
			      : pack_sandbox(message);
		make_answer(&m, message, len, 50);
		n = write(fd, m.bytes, m.len);
	}
	assert_true(n >= 0);
}

static void run_runtime(int listener, enum runtime how)
{
	/* frees everything, also after a test that failed */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		answer_one(fd, how);
		close(fd);
	}
}

static void on_named(void *userdata, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	struct node *n = userdata;

	(void)seen_mono_ns;
	n->named++;
	n->last = *jvm;
}

static void on_named_later(void *userdata, const struct jvm *said)
{
	struct node *n = userdata;

	n->later++;
	n->last_later = *said;
}

static bool lives(void *userdata, const char *container_id)
{
	const struct node *n = userdata;

	assert_string_equal(container_id, ID);
	return !n->dead;
}

static const struct names_ops calls = {
	.on_jvm = on_named,
	.on_later = on_named_later,
	.lives = lives,
};

static void node_begin(struct node *n, enum runtime how)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(n, 0, sizeof(*n));
	strcpy(n->dir, "/tmp/kindling-names-XXXXXX");
	assert_non_null(mkdtemp(n->dir));
	snprintf(n->path, sizeof(n->path), "%s/cri.sock", n->dir);
	strcpy(addr.sun_path, n->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	n->runtime = fork();
	if (n->runtime == 0)
		run_runtime(fd, how);
	close(fd);
	assert_int_equal(loop_new(&n->loop), 0);
	assert_int_equal(names_new(n->loop, KINDLING_NAMES, n->path, &calls, n, &n->names), 0);
}

static void node_end(struct node *n)
{
	n->names = names_free(n->names);
	loop_free(n->loop);
	if (n->runtime > 0) {
		kill(n->runtime, SIGKILL);
		waitpid(n->runtime, NULL, 0);
	}
	unlink(n->path);
	rmdir(n->dir);
}

static bool node_ask(struct node *n, const char *id)
{
	static struct jvm jvm;

	memset(&jvm, 0, sizeof(jvm));
	jvm.pid = 1;
	strcpy(jvm.container_id, id);
	return names_ask(n->names, &jvm, 0);
}

/* Runs the loop until @count JVMs have been passed on. */
static void node_wait(struct node *n, unsigned count)
{
	uint64_t until = clock_mono_ns() + 30 * NS_PER_S;

	while (n->named < count && clock_mono_ns() < until)
		(void)loop_round(n->loop, 100 * NS_PER_MS);
	assert_int_equal(n->named, count);
}

static struct names_status status_of(const struct node *n)
{
	struct names_status s;

	names_status(n->names, &s);
	return s;
}

static void jvms_get_their_names_in_their_order(void **state)
{
	struct node n;

	(void)state;
	node_begin(&n, ANSWERS);
	assert_false(node_ask(&n, "")); /* not in a container */
	for (int i = 0; i < 20; i++)
		assert_true(node_ask(&n, ID));
	assert_int_equal(n.named, 0);
	node_wait(&n, 20);
	assert_string_equal(n.last.container, "cart");
	assert_string_equal(n.last.pod, "shop/cart-0");
	assert_string_equal(n.last.image, "reg/cart:1.2");
	assert_string_equal(n.last.noted_service, "checkout");
	assert_true(n.last.allowed.no);
	assert_int_equal(status_of(&n).named, 20);
	assert_string_equal(status_of(&n).error, "");
	node_end(&n);
}

static void an_unknown_container_goes_on_as_it_is(void **state)
{
	struct node n;

	(void)state;
	node_begin(&n, KNOWS_NOBODY);
	assert_true(node_ask(&n, ID));
	node_wait(&n, 1);
	assert_string_equal(n.last.container, "");
	assert_int_equal(status_of(&n).unknown, 1);
	assert_string_equal(status_of(&n).error, "");
	node_end(&n);
}

static void check_failure(enum runtime how, const char *sentence)
{
	struct node n;

	node_begin(&n, how);
	assert_true(node_ask(&n, ID));
	assert_true(node_ask(&n, ID));
	node_wait(&n, 2);
	assert_non_null(strstr(status_of(&n).error, sentence));
	assert_int_equal(status_of(&n).unanswered, 2);
	assert_false(node_ask(&n, ID)); /* the runtime is not asked for a while, and no JVM waits */
	node_end(&n);
}

static void a_runtime_that_does_not_answer_holds_nobody_back_for_long(void **state)
{
	uint64_t begin = clock_mono_ns();

	(void)state;
	check_failure(HANGS, "cri.sock: it does not answer within 3 seconds");
	assert_in_range(clock_mono_ns() - begin, 3 * NS_PER_S, 25 * NS_PER_S);
}

static void other_failures_are_told_apart(void **state)
{
	(void)state;
	check_failure(HANGS_UP, "cri.sock: it hung up");
	check_failure(TALKS_NONSENSE, "cri.sock: it does not speak gRPC");
	check_failure(REFUSES, "cri.sock: it refuses the question");
}

static void a_runtime_may_stop_and_come_back(void **state)
{
	struct node n;
	struct names_status s;
	uint64_t until = clock_mono_ns() + 30 * NS_PER_S;
	char moved[120];

	(void)state;
	node_begin(&n, ANSWERS);
	snprintf(moved, sizeof(moved), "%s.away", n.path);
	assert_int_equal(rename(n.path, moved), 0);
	assert_true(node_ask(&n, ID));
	node_wait(&n, 1);
	assert_non_null(strstr(status_of(&n).error, "there is no such socket"));
	assert_int_equal(rename(moved, n.path), 0);
	do { /* no request is made during the pause */
		(void)node_ask(&n, ID);
		(void)loop_round(n.loop, 50 * NS_PER_MS);
		s = status_of(&n);
	} while (!s.named && clock_mono_ns() < until);
	assert_true(s.named > 0);
	assert_string_equal(s.error, "");
	node_end(&n);
}

/* Runs the loop until no container is left to ask about again. */
static void node_wait_none_again(struct node *n)
{
	uint64_t until = clock_mono_ns() + 30 * NS_PER_S;

	while (status_of(n).asking_again && clock_mono_ns() < until)
		(void)loop_round(n->loop, 100 * NS_PER_MS);
	assert_int_equal(status_of(n).asking_again, 0);
}

static void a_container_without_an_answer_is_asked_about_again(void **state)
{
	struct node n;
	char moved[120];

	(void)state;
	node_begin(&n, ANSWERS);
	snprintf(moved, sizeof(moved), "%s.away", n.path);
	assert_int_equal(rename(n.path, moved), 0);
	assert_true(node_ask(&n, ID));
	assert_true(node_ask(&n, ID));
	node_wait(&n, 2);
	assert_false(node_ask(&n, ID)); /* a JVM of the same container during the pause */
	assert_int_equal(status_of(&n).unanswered, 3);
	assert_int_equal(status_of(&n).asking_again, 1);
	assert_int_equal(n.later, 0);
	assert_int_equal(rename(moved, n.path), 0);
	node_wait_none_again(&n);
	assert_int_equal(n.later, 1);
	assert_string_equal(n.last_later.container_id, ID);
	assert_string_equal(n.last_later.container, "cart");
	assert_string_equal(n.last_later.pod, "shop/cart-0");
	assert_true(n.last_later.allowed.no);
	assert_int_equal(n.named, 2); /* these were passed on long ago */
	assert_int_equal(status_of(&n).answered_later, 1);
	assert_int_equal(status_of(&n).unanswered, 3);
	assert_string_equal(status_of(&n).error, "");
	node_end(&n);
}

static void a_container_whose_jvms_have_ended_is_not_asked_about_again(void **state)
{
	struct node n;

	(void)state;
	node_begin(&n, HANGS_UP);
	assert_true(node_ask(&n, ID));
	node_wait(&n, 1);
	assert_int_equal(status_of(&n).asking_again, 1);
	n.dead = true;
	node_wait_none_again(&n);
	assert_int_equal(n.later, 0);
	assert_int_equal(status_of(&n).answered_later, 0);
	node_end(&n);
}

static void a_container_whose_answer_always_fails_does_not_hold_up_others(void **state)
{
	struct again a = { 0 };
	uint64_t now = NS_PER_S, pause = 0;

	(void)state;
	again_add(&a, "bad", now);
	again_add(&a, "good", now + 1);
	assert_string_equal(again_next(&a)->container_id, "bad");
	again_fail(&a, "bad", now);
	assert_string_equal(again_next(&a)->container_id, "good");
	again_remove(&a, "good");
	for (int i = 0; i < 100; i++) {
		uint64_t last = pause;

		pause = again_next(&a)->next_mono_ns - now;
		assert_true(pause > last || pause == AGAIN_MAX_NS);
		again_add(&a, "bad", now); /* another JVM of the container makes no difference */
		again_fail(&a, "bad", now);
	}
	assert_int_equal(a.n, 1);
	assert_int_equal(pause, AGAIN_MAX_NS);
	again_deinit(&a);
}

static void so_many_containers_are_asked_about_again_and_no_more(void **state)
{
	struct again a = { 0 };
	char id[16];

	(void)state;
	assert_null(again_next(&a));
	for (unsigned i = 0; i < AGAIN_MAX + 10; i++) {
		snprintf(id, sizeof(id), "%x", i);
		again_add(&a, id, AGAIN_MAX - i);
	}
	assert_int_equal(a.n, AGAIN_MAX);
	snprintf(id, sizeof(id), "%x", AGAIN_MAX - 1);
	assert_string_equal(again_next(&a)->container_id, id);
	again_remove(&a, id);
	again_remove(&a, id);
	assert_int_equal(a.n, AGAIN_MAX - 1);
	again_deinit(&a);
}

static void a_program_that_is_not_there_is_said(void **state)
{
	struct node n;

	(void)state;
	node_begin(&n, ANSWERS);
	names_free(n.names);
	assert_int_equal(names_new(n.loop, "/nowhere/kindling-names", n.path, &calls, &n, &n.names),
			 0);
	assert_non_null(strstr(status_of(&n).error, "kindling-names cannot be started"));
	assert_false(node_ask(&n, ID));
	usleep(600000); /* until the next try */
	assert_true(node_ask(&n, ID));
	node_wait(&n, 1);
	assert_non_null(strstr(status_of(&n).error, "kindling-names cannot be started"));
	node_end(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_ids_are_asked_about),
		cmocka_unit_test(the_question_is_whole_frames_and_ends_the_stream),
		cmocka_unit_test(an_answer_may_come_in_any_pieces),
		cmocka_unit_test(padding_is_left_out),
		cmocka_unit_test(invalid_answers_are_errors),
		cmocka_unit_test(a_container_is_read),
		cmocka_unit_test(a_pod_is_read_and_an_unknown_one_is_none),
		cmocka_unit_test(files_have_precedence_and_the_stricter_limit_counts),
		cmocka_unit_test(jvms_get_their_names_in_their_order),
		cmocka_unit_test(an_unknown_container_goes_on_as_it_is),
		cmocka_unit_test(a_runtime_that_does_not_answer_holds_nobody_back_for_long),
		cmocka_unit_test(other_failures_are_told_apart),
		cmocka_unit_test(a_runtime_may_stop_and_come_back),
		cmocka_unit_test(a_container_without_an_answer_is_asked_about_again),
		cmocka_unit_test(a_container_whose_jvms_have_ended_is_not_asked_about_again),
		cmocka_unit_test(a_container_whose_answer_always_fails_does_not_hold_up_others),
		cmocka_unit_test(so_many_containers_are_asked_about_again_and_no_more),
		cmocka_unit_test(a_program_that_is_not_there_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
