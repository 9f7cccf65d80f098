/* Labels of the cloud, from a made-up metadata service on the loopback interface. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/upload/cloud.h"

#define DOCUMENT                                                                                        \
	"{\"accountId\":\"111122223333\",\"availabilityZone\":\"eu-west-1b\",\"instanceId\":\"i-0ab\"," \
	"\"instanceType\":\"m7g.large\",\"region\":\"eu-west-1\",\"pendingTime\":null}"
#define TASK                                                                                            \
	"{\"Cluster\":\"arn:aws:ecs:eu-west-1:111122223333:cluster/shop\",\"TaskARN\":"                 \
	"\"arn:aws:ecs:eu-west-1:111122223333:task/shop/158d\",\"Family\":\"cart\",\"Revision\":\"2\"," \
	"\"AvailabilityZone\":\"eu-west-1a\",\"LaunchType\":\"%s\"}"
#define TOKEN "AQAEA=="

/* The service's answer; body NULL: it sends nothing and keeps the connection open. */
static struct {
	int fd;
	pthread_t thread;
	const char *token, *document, *task;
	unsigned requests, without_token;
} stub;
static char url[64];
static struct labels labels;
static char why[300];

static const char *stub_body(const char *request)
{
	if (strncmp(request, "PUT /latest/api/token ", 22) == 0)
		return strstr(request, "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n") ? stub.token
										       : "";
	if (strncmp(request, "GET /task ", 10) == 0)
		return stub.task;
	if (!strstr(request, "X-aws-ec2-metadata-token: " TOKEN "\r\n"))
		stub.without_token++;
	return strncmp(request, "GET /latest/dynamic/instance-identity/document ", 47) == 0
		       ? stub.document
		       : "";
}

static void *stub_serve(void *unused)
{
	char request[4096], head[128];
	int fds[16], n = 0, fd;

	(void)unused;
	while (n < 16 && (fd = accept(stub.fd, NULL, NULL)) >= 0) {
		ssize_t len = read(fd, request, sizeof(request) - 1);
		const char *body;

		stub.requests++;
		fds[n++] = fd;
		request[len > 0 ? len : 0] = '\0';
		body = stub_body(request);
		if (!body)
			continue;
		snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
			 *body ? "200 OK" : "404 Not Found", strlen(body));
		(void)!send(fd, head, strlen(head), MSG_NOSIGNAL);
		(void)!send(fd, body, strlen(body), MSG_NOSIGNAL);
		(void)shutdown(fd, SHUT_WR);
	}
	while (n > 0)
		close(fds[--n]);
	return NULL;
}

static int set_up(void **state)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	(void)state;
	memset(&stub, 0, sizeof(stub));
	memset(&labels, 0, sizeof(labels));
	stub.token = TOKEN;
	stub.document = DOCUMENT;
	stub.task = "";
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	stub.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(stub.fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(stub.fd, 16) < 0 || getsockname(stub.fd, (struct sockaddr *)&addr, &len) < 0)
		return -1;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(addr.sin_port));
	return pthread_create(&stub.thread, NULL, stub_serve, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	(void)shutdown(stub.fd, SHUT_RDWR);
	pthread_join(stub.thread, NULL);
	close(stub.fd);
	return 0;
}

static void an_instance_says_where_it_is(void **state)
{
	(void)state;
	if (cloud_ask(NULL, url, &labels, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	assert_string_equal(labels.text, "account=111122223333\ncloud=aws\ninstance=i-0ab\n"
					 "instance_type=m7g.large\nregion=eu-west-1\n"
					 "zone=eu-west-1b\n");
	assert_int_equal(stub.without_token, 0);
}

static void a_task_is_asked_first_and_fargate_has_no_instance(void **state)
{
	char task[600];

	(void)state;
	snprintf(task, sizeof(task), TASK, "FARGATE");
	stub.task = task;
	assert_int_equal(cloud_ask(url, url, &labels, why, sizeof(why)), 0);
	assert_string_equal(labels.text, "account=111122223333\ncloud=aws\necs_cluster=shop\n"
					 "ecs_family=cart\nregion=eu-west-1\nzone=eu-west-1a\n");
	assert_int_equal(stub.requests, 1);
	snprintf(task, sizeof(task), TASK, "EC2");
	assert_int_equal(cloud_ask(url, url, &labels, why, sizeof(why)), 0);
	assert_true(labels_is(labels.text, "ecs_cluster", "shop"));
	assert_true(labels_is(labels.text, "instance", "i-0ab"));
}

static void refuse(const char *reason)
{
	char expected[300];

	labels = (struct labels){ 0 };
	assert_int_equal(cloud_ask(NULL, url, &labels, why, sizeof(why)), -ENODATA);
	snprintf(expected, sizeof(expected), "%s%s", url, reason);
	assert_string_equal(why, expected);
	assert_string_equal(labels.text, "");
}

static void another_server_at_the_address_gives_no_labels(void **state)
{
	static char large[100001];

	(void)state;
	stub.token = ""; /* 404: version 1, or anything else that speaks HTTP */
	refuse("/latest/api/token: The requested URL returned error: 404");
	stub.token = "a\r\nX-Evil: b";
	refuse("/latest/api/token: the answer is not a token");
	stub.token = TOKEN;
	stub.document = "<html>";
	refuse("/latest/dynamic/instance-identity/document: the answer is not an identity document");
	stub.document = "{\"instanceId\":[1]}";
	refuse("/latest/dynamic/instance-identity/document: the answer is not an identity document");
	memset(large, ' ', sizeof(large) - 1);
	stub.document = large;
	assert_int_equal(cloud_ask(NULL, url, &labels, why, sizeof(why)), -ENODATA);
	assert_int_equal(cloud_ask(NULL, "file:///etc", &labels, why, sizeof(why)), -ENODATA);
}

static void a_silent_metadata_service_is_given_up(void **state)
{
	uint64_t begin = clock_mono_ns();

	(void)state;
	stub.token = stub.task = NULL;
	assert_int_equal(cloud_ask(url, url, &labels, why, sizeof(why)), -ENODATA);
	assert_in_range(clock_mono_ns() - begin, NS_PER_S, 10 * NS_PER_S);
}

static void hostile_texts_are_cleaned(void **state)
{
	bool fargate = false;

	(void)state;
	assert_true(cloud_parse_ec2("{\"instanceId\":\"i\\nteam=x\"}", 26, &labels));
	assert_string_equal(labels.text, "cloud=aws\ninstance=i?team=x\n");
	assert_false(cloud_parse_ecs("{\"TaskARN\":\"arn:aws:ecs::\"}", 27, &labels, &fargate));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_instance_says_where_it_is),
		TEST(a_task_is_asked_first_and_fargate_has_no_instance),
		TEST(another_server_at_the_address_gives_no_labels),
		TEST(a_silent_metadata_service_is_given_up),
		TEST(hostile_texts_are_cleaned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
