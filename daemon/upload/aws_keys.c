/* See aws_keys.h. */
#include "daemon/upload/aws_keys.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/core/worker.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"
#include "daemon/upload/metadata.h"

#define ECS_URL "http://169.254.170.2"
/* new keys are requested this long before the old ones expire */
#define BEFORE_NS   (300 * NS_PER_S)
#define AGAIN_NS    (2 * NS_PER_S) /* doubled each time, up to */
#define AGAIN_MAX   (120 * NS_PER_S)
#define DOUBT_NS    (60 * NS_PER_S)
#define REQUEST_MAX (AWS_TOKEN_SIZE + 40)

struct aws_asker {
	struct worker *worker;
	struct loop_timer *timer;
	uint64_t again_ns, asked_mono_ns;
	bool asking;
	char container[512]; /* url; "" = none */
	char token_file[256], token[AWS_TOKEN_SIZE]; /* the token for it; "" = none */
	char ec2[256]; /* "" = not available */
	struct aws_keys known;
	bool has_keys;
	char why[300];
	/* in use by the worker until it has ended */
	struct aws_keys asked;
	char asked_why[300];
	int result;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void aws_keys_json_freep(cJSON **json)
{
	cJSON_Delete(*json);
}

/* Text that goes into a header must be one line. */
static bool aws_keys_copy(char *to, size_t size, const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			return false;
	return (size_t)snprintf(to, size, "%s", text) < size;
}

static bool aws_keys_word(const cJSON *json, const char *key, char *to, size_t size)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

	return aws_keys_copy(to, size, text ? text : "");
}

bool aws_keys_parse(const char *text, size_t len, struct aws_keys *ret)
{
	CLEANUP(aws_keys_json_freep) cJSON *json = cJSON_ParseWithLength(text, len);
	struct aws_keys k = { .end_real_ns = 0 };
	struct tm tm = { 0 };
	char end[40];
	time_t at;

	if (!aws_keys_word(json, "AccessKeyId", k.access_key, sizeof(k.access_key)) ||
	    !aws_keys_word(json, "SecretAccessKey", k.secret_key, sizeof(k.secret_key)) ||
	    !aws_keys_word(json, "Token", k.session_token, sizeof(k.session_token)) ||
	    !aws_keys_word(json, "Expiration", end, sizeof(end)) || !k.access_key[0] ||
	    !k.secret_key[0])
		return false;
	if (end[0]) { /* "2026-11-23T07:00:00Z" */
		at = strptime(end, "%Y-%m-%dT%H:%M:%S", &tm) ? timegm(&tm) : -1;
		if (at <= 0)
			return false;
		k.end_real_ns = (uint64_t)at * NS_PER_S;
	}
	*ret = k;
	return true;
}

bool aws_keys_url_is_near(const char *url)
{
	static const char *const hosts[] = { "127.0.0.1",     "localhost",	"[::1]",
					     "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]" };
	char *host = NULL, *scheme = NULL;
	CURLU *u = curl_url();
	bool near = false;

	if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && strcmp(scheme, "http") == 0)
		for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
			near |= strcmp(host, hosts[i]) == 0;
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(u);
	return near;
}

/* ---- requests: the worker -------------------------------------------------------------------- */

static int aws_asker_take(struct aws_asker *a, int r, struct metadata_answer *answer,
			  const char *whose)
{
	if (r == 0 && (!answer->text || !aws_keys_parse(answer->text, answer->len, &a->asked))) {
		snprintf(a->asked_why, sizeof(a->asked_why), "%s: the answer has no keys", whose);
		r = -ENODATA;
	}
	if (answer->text)
		explicit_bzero(answer->text, answer->len);
	free(answer->text);
	return r;
}

/* Reads the token again, because its file may hold a new one. If that fails the old token stays. */
static void aws_asker_read_token(struct aws_asker *a)
{
	CLEANUP(fd_closep) int fd = -1;
	char text[AWS_TOKEN_SIZE];
	ssize_t n;

	if (!a->token_file[0])
		return;
	fd = open(a->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return;
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	(void)aws_keys_copy(a->token, sizeof(a->token), text);
	explicit_bzero(text, sizeof(text));
}

static int aws_asker_ask_container(struct aws_asker *a)
{
	struct metadata_answer answer = { 0 };
	char header[REQUEST_MAX];
	int r;

	if (!aws_keys_url_is_near(a->container)) {
		snprintf(a->asked_why, sizeof(a->asked_why),
			 "AWS_CONTAINER_CREDENTIALS_FULL_URI: %.150s is not a service of this host",
			 a->container);
		return -ENODATA;
	}
	aws_asker_read_token(a);
	snprintf(header, sizeof(header), "Authorization: %s", a->token);
	r = metadata_request(a->container, NULL, a->token[0] ? header : NULL, &answer, a->asked_why,
			     sizeof(a->asked_why));
	explicit_bzero(header, sizeof(header));
	return aws_asker_take(a, r, &answer, a->container);
}

static int aws_asker_ask_ec2(struct aws_asker *a)
{
	static const char path[] = "/latest/meta-data/iam/security-credentials/";
	struct metadata_answer answer = { 0 };
	int r = metadata_ec2(a->ec2, (const char *const[2]){ path, path }, &answer, a->asked_why,
			     sizeof(a->asked_why));

	return aws_asker_take(a, r, &answer, "the role of this instance");
}

static void aws_asker_run(void *userdata)
{
	struct aws_asker *a = userdata;

	a->result = -ENODATA;
	snprintf(a->asked_why, sizeof(a->asked_why), "there is no source of keys");
	if (a->container[0])
		a->result = aws_asker_ask_container(a);
	else if (a->ec2[0])
		a->result = aws_asker_ask_ec2(a);
}

/* ---- renewal --------------------------------------------------------------------------------- */

static void aws_asker_on_done(void *userdata)
{
	struct aws_asker *a = userdata;
	uint64_t now = clock_real_ns(), wait = a->again_ns;

	a->asking = false;
	if (a->result < 0) {
		if (strcmp(a->why, a->asked_why) != 0) /* logged only when it changes */
			log_warn("upload.aws_keys", "error=%s", log_str(a->asked_why));
		memcpy(a->why, a->asked_why, sizeof(a->why));
		a->again_ns = 2 * a->again_ns < AGAIN_MAX ? 2 * a->again_ns : AGAIN_MAX;
	} else {
		a->known = a->asked;
		a->has_keys = true;
		a->why[0] = '\0';
		wait = a->again_ns = AGAIN_NS;
		if (!a->known.end_real_ns)
			wait = UINT64_MAX;
		else if (a->known.end_real_ns > now + BEFORE_NS + AGAIN_NS)
			wait = a->known.end_real_ns - now - BEFORE_NS;
	}
	if (a->timer)
		loop_timer_set(a->timer, wait, 0);
}

static void aws_asker_ask(void *userdata)
{
	struct aws_asker *a = userdata;

	if (a->asking)
		return;
	a->asked_mono_ns = clock_mono_ns();
	a->asking = worker_submit(a->worker, aws_asker_run, aws_asker_on_done, a) == 0;
}

void aws_asker_doubt(struct aws_asker *a)
{
	if (a->worker && clock_mono_ns() - a->asked_mono_ns > DOUBT_NS)
		aws_asker_ask(a);
}

const struct aws_keys *aws_asker_keys(const struct aws_asker *a, const char **ret_why)
{
	*ret_why = a->why[0] ? a->why : "they are being requested";
	if (!a->has_keys)
		return NULL;
	if (a->known.end_real_ns && a->known.end_real_ns < clock_real_ns()) {
		if (!a->why[0])
			*ret_why = "they have expired";
		return NULL;
	}
	return &a->known;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static const char *aws_asker_env(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static bool aws_asker_take_env(struct aws_keys *k)
{
	return aws_keys_copy(k->access_key, sizeof(k->access_key),
			     aws_asker_env("AWS_ACCESS_KEY_ID")) &&
	       aws_keys_copy(k->secret_key, sizeof(k->secret_key),
			     aws_asker_env("AWS_SECRET_ACCESS_KEY")) &&
	       aws_keys_copy(k->session_token, sizeof(k->session_token),
			     aws_asker_env("AWS_SESSION_TOKEN")) &&
	       k->access_key[0] && k->secret_key[0];
}

int aws_asker_new(struct aws_asker **ret)
{
	struct aws_asker *a = calloc(1, sizeof(*a));
	const char *relative = aws_asker_env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");

	if (!a)
		return -ENOMEM;
	a->again_ns = AGAIN_NS;
	a->has_keys = aws_asker_take_env(&a->known);
	if (*relative == '/')
		snprintf(a->container, sizeof(a->container), "%s%s", ECS_URL, relative);
	else
		snprintf(a->container, sizeof(a->container), "%s",
			 aws_asker_env("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
	(void)aws_keys_copy(a->token, sizeof(a->token),
			    aws_asker_env("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
	snprintf(a->token_file, sizeof(a->token_file), "%s",
		 aws_asker_env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
	aws_asker_read_token(a);
	if (strcmp(aws_asker_env("AWS_EC2_METADATA_DISABLED"), "true") != 0)
		metadata_ec2_base(a->ec2, sizeof(a->ec2));
	*ret = a;
	return 0;
}

int aws_asker_begin(struct aws_asker *a, struct loop *loop)
{
	int r;

	if (a->has_keys) /* keys of the environment: no service is asked */
		return 0;
	r = worker_new(loop, &a->worker);
	if (r == 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, aws_asker_ask, a, &a->timer);
	if (r == 0)
		aws_asker_ask(a);
	return r;
}

struct aws_asker *aws_asker_free(struct aws_asker *a)
{
	if (!a)
		return NULL;
	a->timer = loop_timer_free(a->timer);
	worker_free(a->worker);
	explicit_bzero(a, sizeof(*a));
	free(a);
	return NULL;
}
