/* Requests to kindlingd over its Unix socket, by libcurl. */
#include "daemon/cli/cli.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_MAX  (1u << 30)
#define TIMEOUT_S 120L

const char *cli_socket;

static bool client_append(struct reply *r, const char *data, size_t n)
{
	size_t cap = r->cap ? r->cap : 4096;
	char *p;

	if (r->len + n > BODY_MAX)
		return false;
	while (cap < r->len + n + 1)
		cap *= 2;
	if (cap != r->cap) {
		p = realloc(r->body, cap);
		if (!p)
			return false;
		r->body = p;
		r->cap = cap;
	}
	memcpy(r->body + r->len, data, n);
	r->len += n;
	r->body[r->len] = '\0';
	return true;
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	return client_append(userdata, data, size * n) ? size * n : 0;
}

/* A header such as "Kindling-Samples: 512\r
 * "; not NUL-terminated. */
static size_t on_header(char *data, size_t size, size_t n, void *userdata)
{
	struct report_counts *c = &((struct reply *)userdata)->counts;
	const struct {
		const char *name;
		uint64_t *value;
	} headers[] = {
		{ "Kindling-Samples:", &c->samples },
		{ "Kindling-Dropped:", &c->dropped },
		{ "Kindling-Filtered:", &c->filtered },
		{ "Kindling-Idle:", &c->idle },
	};
	char line[128];

	if (size * n >= sizeof(line))
		return size * n;
	memcpy(line, data, size * n);
	line[size * n] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		if (strncasecmp(line, headers[i].name, strlen(headers[i].name)) == 0)
			*headers[i].value = strtoull(line + strlen(headers[i].name), NULL, 10);
	return size * n;
}

static CURL *open_curl(const char *method, const char *path)
{
	char url[PATH_MAX_BYTES + 32];
	CURL *c = curl_easy_init();

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

/* ---- errors ---------------------------------------------------------------------------------- */

static bool is_denied(CURLcode code, long os_error)
{
	return code == CURLE_COULDNT_CONNECT && (os_error == EACCES || os_error == EPERM);
}

static void client_print_unreachable(CURLcode code, long os_error)
{
	const char *advice =
		"Start it with: sudo systemctl start kindlingd   (or in the foreground: sudo kindlingd). If it uses another socket, add --socket PATH";

	fputs("kindling: ", stderr);
	if (is_denied(code, os_error)) {
		fprintf(stderr, "permission denied: you may not use the socket of kindlingd, ");
		advice =
			"Use sudo, or join the group kindling: sudo usermod -aG kindling \"$USER\", then log in again";
	} else if (code == CURLE_COULDNT_CONNECT) {
		fprintf(stderr, "no kindlingd answers on ");
	} else if (code == CURLE_OPERATION_TIMEDOUT) {
		fprintf(stderr, "no answer within %ld s from kindlingd on ", TIMEOUT_S);
		advice = "Look at the log of kindlingd: journalctl -u kindlingd";
	} else {
		fprintf(stderr, "the connection broke (%s): kindlingd on ",
			curl_easy_strerror(code));
		advice = "Look at the log of kindlingd: journalctl -u kindlingd";
	}
	print_text(stderr, cli_socket);
	fprintf(stderr, ".\n%s.\n", advice);
}

/* Prints the JVMs that an error lists, one in each line. */
static void client_print_targets(const cJSON *json)
{
	const cJSON *t;

	cJSON_ArrayForEach(t, json_get(json, "targets"))
	{
		fprintf(stderr, "%10.0f  ", json_number_of(t, "pid"));
		print_text(stderr, json_text_of(t, "name"));
		if (*json_text_of(t, "place")) {
			fputs(" in ", stderr);
			print_text(stderr, json_text_of(t, "place"));
		}
		fputc('\n', stderr);
	}
	if (json_number_of(json, "more") > 0)
		fprintf(stderr, "           and %.0f more: kindling status\n",
			json_number_of(json, "more"));
}

static void client_print_refusal(const struct reply *r)
{
	cJSON *json = r->body ? cJSON_Parse(r->body) : NULL;
	const char *text = json_text_of(json, "error");

	fputs("kindling: ", stderr);
	if (*text)
		print_text(stderr, text);
	else
		fprintf(stderr, "kindlingd refused the request (HTTP %ld) without a reason",
			r->status);
	fputc('\n', stderr);
	client_print_targets(json);
	cJSON_Delete(json);
}

/* ---- one answer ----------------------------------------------------------------------------- */

/* Selects which errors of connecting to the daemon are printed: none, all but "no daemon listens",
 * or all. */
enum saying { SAY_NOTHING, SAY_BUT_NONE, SAY_ALL };

static int client_request_once(const char *method, const char *path, const char *header,
			       struct reply *ret, enum saying saying)
{
	struct curl_slist *headers = header ? curl_slist_append(NULL, header) : NULL;
	CURL *c = open_curl(method, path);
	long os_error = 0;
	CURLcode code;

	memset(ret, 0, sizeof(*ret));
	if (!c || !client_append(ret, "", 0)) {
		fputs("kindling: no memory\n", stderr);
		curl_slist_free_all(headers);
		return CLI_FAILED;
	}
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, ret);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, ret);
	code = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &ret->status);
	curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &os_error);
	curl_easy_cleanup(c);
	curl_slist_free_all(headers);
	if (code == CURLE_OK && ret->status >= 200 && ret->status <= 299)
		return CLI_OK;
	if (saying == SAY_NOTHING) {
		ret->denied = is_denied(code, os_error);
	} else if (code == CURLE_OK) {
		client_print_refusal(ret);
	} else if (saying == SAY_ALL || code != CURLE_COULDNT_CONNECT ||
		   is_denied(code, os_error)) {
		client_print_unreachable(code, os_error);
	}
	reply_free(ret);
	if (code == CURLE_OK)
		return CLI_FAILED;
	/* an answer that broke off shows that there is a daemon: nobody must attach beside it */
	return saying != SAY_ALL && (code != CURLE_COULDNT_CONNECT || is_denied(code, os_error))
		       ? CLI_FAILED
		       : CLI_NO_DAEMON;
}

int client_request(const char *method, const char *path, struct reply *ret)
{
	return client_request_once(method, path, NULL, ret, SAY_ALL);
}

int client_accepting(const char *accept, const char *path, struct reply *ret)
{
	char header[512];

	snprintf(header, sizeof(header), "Accept: %s", accept);
	return client_request_once("GET", path, header, ret, SAY_ALL);
}

int client_try(const char *method, const char *path, struct reply *ret)
{
	return client_request_once(method, path, NULL, ret, SAY_BUT_NONE);
}

int client_look(const char *method, const char *path, struct reply *ret)
{
	return client_request_once(method, path, NULL, ret, SAY_NOTHING);
}

void reply_free(struct reply *r)
{
	free(r->body);
	r->body = NULL;
	r->len = r->cap = 0;
}

cJSON *reply_json(const struct reply *r)
{
	cJSON *json = cJSON_Parse(r->body);

	if (!json)
		fputs("kindling: the answer of kindlingd is not JSON; kindling and kindlingd may be of different versions\n",
		      stderr);
	return json;
}

/* ---- lines as they come --------------------------------------------------------------------- */

struct lines {
	CURL *curl;
	bool (*on_line)(void *userdata, const char *line);
	void *userdata;
	struct reply partial;
	bool ended;
};

static size_t on_stream(char *data, size_t size, size_t n, void *userdata)
{
	struct lines *l = userdata;
	char *begin, *end;
	long status = 0;

	if (!client_append(&l->partial, data, size * n))
		return 0;
	curl_easy_getinfo(l->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) /* an error instead of events */
		return size * n;
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

int client_stream(const char *path, bool (*on_line)(void *userdata, const char *line),
		  void *userdata)
{
	struct lines l = { .on_line = on_line, .userdata = userdata };
	CURL *c = open_curl("GET", path);
	int r = CLI_OK;
	CURLcode code;
	long os_error = 0;

	if (!c)
		return CLI_FAILED;
	l.curl = c;
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_stream);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &l);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	code = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &l.partial.status);
	curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &os_error);
	curl_easy_cleanup(c);
	if (l.partial.status >= 400) {
		client_print_refusal(&l.partial);
		r = CLI_FAILED;
	} else if (l.ended || cli_interrupted) {
		r = CLI_OK;
	} else if (l.partial.status == 0) {
		client_print_unreachable(code, os_error);
		r = CLI_NO_DAEMON;
	} else {
		fputs("kindling: kindlingd has ended; run this command again when it is back\n",
		      stderr);
		r = CLI_NO_DAEMON;
	}
	reply_free(&l.partial);
	return r;
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
