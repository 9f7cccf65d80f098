/* Sends statements to ClickHouse's HTTP interface and receives rows. */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/source.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/trust.h"

#define ANSWER_MAX   (512u << 20)
#define WORDS_MAX    600 /* bytes of the server's message that are shown */
#define CONNECT_S    10L
#define TIMEOUT_S    300L
#define PASSWORD_MAX 1024

/* Does @host have only characters of host names and addresses? "example.org:8123", "[::1]". */
static bool source_host_is_fine(const char *host, size_t len)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";

	return len && len < 200 && strspn(host, fine) >= len;
}

bool source_parse_url(const char *url, struct source_server *ret, char *why, size_t why_size)
{
	static const char plain[] = "clickhouse://", tls[] = "clickhouses://";
	bool is_tls = strncmp(url, tls, strlen(tls)) == 0;
	const char *host = url + strlen(is_tls ? tls : plain), *port;
	size_t len;

	if (!is_tls && strncmp(url, plain, strlen(plain)) != 0) {
		snprintf(why, why_size, "--source takes clickhouse://HOST:PORT/DATABASE");
		return false;
	}
	len = strcspn(host, "/");
	if (!source_host_is_fine(host, len)) {
		snprintf(why, why_size,
			 "--source: put HOST or HOST:PORT between :// and /; user and password "
			 "come from the environment");
		return false;
	}
	snprintf(ret->database, sizeof(ret->database), "%s",
		 host[len] && host[len + 1] ? host + len + 1 : "kindling");
	if (!clickhouse_name_is_fine(ret->database)) {
		snprintf(why, why_size, "--source: a database's name has letters, digits and _");
		return false;
	}
	port = memchr(host, ']', len);
	port = memchr(port ? port : host, ':', len - (size_t)((port ? port : host) - host));
	snprintf(ret->url, sizeof(ret->url), "%s://%.*s%s/", is_tls ? "https" : "http", (int)len,
		 host,
		 port	  ? ""
		 : is_tls ? ":8443"
			  : ":8123");
	return true;
}

/* ---- a request ------------------------------------------------------------------------------ */

static size_t source_on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct reply *r = userdata;
	size_t cap = r->cap;
	char *p;

	n *= size;
	if (r->len + n > ANSWER_MAX)
		return 0;
	while (cap < r->len + n + 1)
		cap = 2 * cap + 65536;
	if (cap != r->cap) {
		p = realloc(r->body, cap);
		if (!p)
			return 0;
		r->body = p;
		r->cap = cap;
	}
	memcpy(r->body + r->len, data, n);
	r->len += n;
	r->body[r->len] = '\0';
	return n;
}

/* Reads the password: the first line of $CLICKHOUSE_PASSWORD_FILE, else $CLICKHOUSE_PASSWORD.
 * false after printing the error. */
static bool source_password(char *buf, size_t size)
{
	const char *file = getenv("CLICKHOUSE_PASSWORD_FILE"),
		   *word = getenv("CLICKHOUSE_PASSWORD");
	FILE *f;

	buf[0] = '\0';
	if (!file) {
		snprintf(buf, size, "%s", word ? word : "");
		return true;
	}
	f = fopen(file, "re");
	if (!f) {
		fputs("kindling: CLICKHOUSE_PASSWORD_FILE: ", stderr);
		print_text(stderr, file);
		fprintf(stderr, ": %s\n", strerror(errno));
		return false;
	}
	if (fgets(buf, (int)size, f))
		buf[strcspn(buf, "\r\n")] = '\0';
	fclose(f);
	return true;
}

static struct curl_slist *source_headers(const char *password)
{
	const char *user = getenv("CLICKHOUSE_USER");
	char line[PASSWORD_MAX + 64];
	struct curl_slist *list = curl_slist_append(NULL, "Content-Type: text/plain");

	snprintf(line, sizeof(line), "X-ClickHouse-User: %.256s", user ? user : "default");
	list = curl_slist_append(list, line);
	if (*password) {
		snprintf(line, sizeof(line), "X-ClickHouse-Key: %s", password);
		list = curl_slist_append(list, line);
	}
	return list;
}

/* Prints the server's message as one line. */
static void source_report_refusal(const struct source_server *s, const struct reply *r)
{
	char words[WORDS_MAX], clean[4 * WORDS_MAX];

	snprintf(words, sizeof(words), "%.*s", (int)strcspn(r->body ? r->body : "", "\n"),
		 r->body ? r->body : "");
	(void)text_clean(words, SIZE_MAX, clean, sizeof(clean));
	fprintf(stderr, "kindling: %s answers HTTP %ld: %s\n", s->url, r->status,
		*clean ? clean : "without a reason");
	if (strstr(words, "Code: 60") || strstr(words, "Code: 81"))
		fprintf(stderr,
			"Its tables are created by: kindling clickhouse schema --database %s | "
			"clickhouse-client -n\n",
			s->database);
}

static void source_report_unreachable(const struct source_server *s, CURLcode code,
				      const char *error, const struct reply *r)
{
	if (r->len >= ANSWER_MAX - 65536 && code == CURLE_WRITE_ERROR)
		fprintf(stderr,
			"kindling: the answer of %s is larger than %u MiB: ask for less time, or one "
			"--service, --pod or --node\n",
			s->url, ANSWER_MAX >> 20);
	else
		fprintf(stderr, "kindling: %s: %s\n", s->url,
			*error ? error : curl_easy_strerror(code));
}

static CURL *source_http_source_open(const struct source_server *s, const char *sql, char *error,
				     struct curl_slist *headers, struct reply *ret)
{
	char url[400];
	CURL *c = curl_easy_init();

	if (!c)
		return NULL;
	/* with wait_end_of_query an error in the middle of an answer is seen in the HTTP status */
	snprintf(url, sizeof(url), "%s?wait_end_of_query=1&enable_http_compression=1", s->url);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, sql);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(c, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, source_on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, ret);
	if (getenv("CURL_CA_BUNDLE"))
		curl_easy_setopt(c, CURLOPT_CAINFO, getenv("CURL_CA_BUNDLE"));
	else if (trust_file())
		curl_easy_setopt(c, CURLOPT_CAINFO, trust_file());
	return c;
}

int source_ask(const struct source_server *s, const char *sql, struct reply *ret)
{
	char error[CURL_ERROR_SIZE] = "", password[PASSWORD_MAX];
	struct curl_slist *headers;
	CURLcode code = CURLE_OUT_OF_MEMORY;
	CURL *c;

	memset(ret, 0, sizeof(*ret));
	if (!source_password(password, sizeof(password)))
		return CLI_FAILED;
	headers = source_headers(password);
	c = source_http_source_open(s, sql, error, headers, ret);
	if (c) {
		code = curl_easy_perform(c);
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &ret->status);
		curl_easy_cleanup(c);
	}
	curl_slist_free_all(headers);
	if (code == CURLE_OK && ret->status == 200)
		return CLI_OK;
	if (code == CURLE_OK)
		source_report_refusal(s, ret);
	else
		source_report_unreachable(s, code, error, ret);
	reply_free(ret);
	return CLI_FAILED;
}
