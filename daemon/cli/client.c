/* libcurl over the daemon's Unix socket. */
#include "daemon/cli/cli.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX (1u << 30)

const char *cli_socket;

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct reply *r = userdata;
	size_t len = size * n;
	char *p;

	if (r->len + len > BODY_MAX)
		return 0;
	p = realloc(r->body, r->len + len + 1);
	if (!p)
		return 0;
	memcpy(p + r->len, data, len);
	r->body = p;
	r->len += len;
	p[r->len] = '\0';
	return len;
}

static CURL *open_curl(const char *method, const char *path)
{
	CURL *c = curl_easy_init();
	char url[4096];

	if (!c)
		return NULL;
	snprintf(url, sizeof(url), "http://kindling%s", path);
	curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, cli_socket);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	return c;
}

static void say_no_daemon(CURLcode code)
{
	fprintf(stderr,
		"kindling: no daemon answers on %s (%s)\n"
		"Start one with: sudo kindlingd   (or: sudo systemctl start kindlingd); --socket names another.\n",
		cli_socket, curl_easy_strerror(code));
}

static void say_error(const struct reply *r)
{
	cJSON *json = r->body ? cJSON_Parse(r->body) : NULL;
	const char *text = json_text(json, "error");

	fprintf(stderr, "kindling: %s\n", *text ? text : "the daemon refused without saying why");
	cJSON_Delete(json);
}

static int request(const char *method, const char *path, struct reply *ret, bool quiet)
{
	CURL *c = open_curl(method, path);
	CURLcode code;

	memset(ret, 0, sizeof(*ret));
	if (!c)
		return CLI_FAILED;
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, ret);
	code = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_cleanup(c);
	if (code != CURLE_OK) {
		if (!quiet)
			say_no_daemon(code);
		return CLI_NO_DAEMON;
	}
	if (ret->status < 200 || ret->status > 299) {
		say_error(ret);
		reply_free(ret);
		return CLI_FAILED;
	}
	return CLI_OK;
}

int client_request(const char *method, const char *path, struct reply *ret)
{
	return request(method, path, ret, false);
}

int client_try(const char *method, const char *path, struct reply *ret)
{
	return request(method, path, ret, true);
}

void reply_free(struct reply *r)
{
	free(r->body);
	r->body = NULL;
	r->len = 0;
}

/* ---- lines as they come ----------------------------------------------------------------------- */

struct lines {
	bool (*on_line)(void *userdata, const char *line);
	void *userdata;
	struct reply partial;
	bool ended;
};

static size_t on_stream(char *data, size_t size, size_t n, void *userdata)
{
	struct lines *l = userdata;
	char *begin, *end;

	if (on_body(data, size, n, &l->partial) != size * n)
		return 0;
	begin = l->partial.body;
	while (!l->ended && (end = strchr(begin, '\n'))) {
		*end = '\0';
		if (!l->on_line(l->userdata, begin))
			l->ended = true;
		begin = end + 1;
	}
	l->partial.len -= (size_t)(begin - l->partial.body);
	memmove(l->partial.body, begin, l->partial.len + 1);
	return l->ended ? 0 : size * n;
}

static int on_progress(void *userdata, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)userdata;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return cli_interrupted;
}

int client_stream(const char *path, bool (*on_line)(void *userdata, const char *line), void *userdata)
{
	struct lines l = { .on_line = on_line, .userdata = userdata };
	CURL *c = open_curl("GET", path);
	CURLcode code;
	long status = 0;

	if (!c)
		return CLI_FAILED;
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_stream);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &l);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	code = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	if (status >= 400)
		say_error(&l.partial);
	reply_free(&l.partial);
	if (status >= 400)
		return CLI_FAILED;
	if (status == 0) {
		say_no_daemon(code);
		return CLI_NO_DAEMON;
	}
	if (!l.ended && !cli_interrupted) {
		fprintf(stderr, "kindling: the daemon ended\n");
		return CLI_NO_DAEMON;
	}
	return CLI_OK;
}

void path_add(char *path, size_t size, const char *key, const char *value)
{
	size_t len = strlen(path);
	char *escaped;

	if (!value)
		return;
	escaped = curl_easy_escape(NULL, value, 0);
	snprintf(path + len, size - len, "%c%s=%s", strchr(path, '?') ? '&' : '?', key,
		 escaped ? escaped : "");
	curl_free(escaped);
}
