/*
 * ClickHouse by HTTP: of each interval of a JVM a body for each table, RowBinary and gzip, and a
 * request that inserts it. Rows that come twice are one (docs/decisions/0019), so whatever is not
 * confirmed is sent again. With `create` tables that are missing are created, a statement a
 * request, in the place of the body that missed them.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include "daemon/clickhouse/rows.h"
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/upload/http.h"
#include "daemon/upload/sink_types.h"

#define CLICKHOUSE_DATABASE "kindling"
#define CLICKHOUSE_SUFFIX   ".rowbinary.gz"

struct clickhouse_sink {
	char base[540]; /* the url, up to the "?" or "&" that our words stand behind */
	const char *database;
	bool creates; /* statement @step is next */
	unsigned step;
};

/* ---- bodies ---------------------------------------------------------------------------------- */

static int clickhouse_gzip(const struct text_out *in, char **ret, size_t *ret_len)
{
	z_stream z = { 0 };
	uLong bound;
	int r;

	if (in->len > UINT32_MAX)
		return -EINVAL;
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&z, in->len) + 32;
	*ret = malloc(bound);
	z.next_in = (uint8_t *)in->p;
	z.avail_in = (uInt)in->len;
	z.next_out = (uint8_t *)*ret;
	z.avail_out = (uInt)bound;
	r = *ret && deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : -ENOMEM;
	*ret_len = z.total_out;
	deflateEnd(&z);
	return r;
}

/* The samples are what the ledger counts; the other two are about them. */
static int clickhouse_put(struct sink *s, const struct sink_interval *in,
			  const struct clickhouse_rows *rows, enum clickhouse_table table)
{
	CLEANUP(freep) char *body = NULL;
	char base[300], key[400];
	size_t len;
	int r;

	if (!rows->rows[table])
		return 0;
	r = clickhouse_gzip(&rows->tables[table], &body, &len);
	if (r < 0)
		return r;
	sink_key(in, base, sizeof(base));
	snprintf(key, sizeof(key), "%s.%s" CLICKHOUSE_SUFFIX, base, clickhouse_table_names[table]);
	return sink_put(s, in, key, "application/octet-stream", body, len,
			table == CLICKHOUSE_SAMPLES ? rows->samples : 0);
}

static int clickhouse_encode(struct sink *s, const struct sink_interval *in)
{
	char label[LABEL_VALUE_SIZE];
	const struct profile *p = in->profile;
	struct clickhouse_rows rows;
	bool is_known = *labels_get(p->strings[in->process->labels], "node", label);
	int r = clickhouse_rows_make(p, is_known ? NULL : in->node, &rows);

	/* a test is one body: that of samples */
	for (unsigned i = 0; i < CLICKHOUSE_TABLES && r == 0; i++)
		if (!s->test_encodes || i == CLICKHOUSE_SAMPLES)
			r = clickhouse_put(s, in, &rows, (enum clickhouse_table)i);
	clickhouse_rows_deinit(&rows);
	return r;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Code 60: no such table; 81: no such database. */
static void clickhouse_on_insert(struct sink *s, struct http_answer *a)
{
	struct clickhouse_sink *d = s->data;

	if (!s->config->create || a->status < 400 ||
	    (strncmp(a->body, "Code: 60,", 9) != 0 && strncmp(a->body, "Code: 81,", 9) != 0 &&
	     strncmp(a->body, "Code: 60.", 9) != 0 && strncmp(a->body, "Code: 81.", 9) != 0))
		return;
	d->creates = true;
	d->step = 0;
	a->retry_after_ns = NS_PER_MS;
}

static struct clickhouse_schema clickhouse_schema_of(const struct clickhouse_sink *d)
{
	return (struct clickhouse_schema){ .database = d->database };
}

static void clickhouse_on_statement(struct sink *s, struct http_answer *a)
{
	struct clickhouse_sink *d = s->data;
	const struct clickhouse_schema schema = clickhouse_schema_of(d);
	struct text_out next = { 0 };

	if (a->status != 200)
		return;
	d->step++;
	d->creates = clickhouse_put_statement(&next, &schema, d->step);
	a->retry_after_ns = NS_PER_MS;
	free(next.p);
}

/* The body that waits for it was not sent. */
static enum sink_verdict clickhouse_judge_statement(const struct http_answer *a, char *why)
{
	if (a->status == 200)
		snprintf(why, SINK_TEXT_MAX, "the tables are being created");
	return SINK_RETRY;
}

static int clickhouse_send_statement(struct sink *s, struct sink_file *f)
{
	const struct clickhouse_sink *d = s->data;
	const struct clickhouse_schema schema = clickhouse_schema_of(d);
	const struct http_request r = { .method = "POST",
					.url = s->config->url,
					.on_answer = clickhouse_on_statement,
					.judge = clickhouse_judge_statement };
	struct text_out sql = { 0 };
	int fd, e;

	(void)clickhouse_put_statement(&sql, &schema, d->step);
	fd = sql.failed ? -1 : memfd_create("statement", MFD_CLOEXEC);
	e = fd < 0 || write(fd, sql.p, sql.len) != (ssize_t)sql.len || lseek(fd, 0, SEEK_SET) < 0
		    ? -ENOMEM
		    : 0;
	if (e == 0)
		e = http_send(s, f, fd, sql.len, &r);
	else
		fd_close(fd);
	free(sql.p);
	return e;
}

/* ---- inserts --------------------------------------------------------------------------------- */

/* "..._2026-11-22T20-04-00Z.samples.rowbinary.gz" */
static int clickhouse_table_of(const char *key)
{
	char end[64];

	for (int i = 0; i < CLICKHOUSE_TABLES; i++) {
		size_t len = strlen(key), n;

		snprintf(end, sizeof(end), ".%s" CLICKHOUSE_SUFFIX, clickhouse_table_names[i]);
		n = strlen(end);
		if (len > n && strcmp(key + len - n, end) == 0)
			return i;
	}
	return -EBADMSG;
}

static int clickhouse_url(const struct clickhouse_sink *d, enum clickhouse_table table, char *buf,
			  size_t size)
{
	struct text_out sql = { 0 };
	char *escaped = NULL;
	int n = -1;

	clickhouse_put_insert(&sql, d->database, table);
	if (!sql.failed)
		escaped = curl_easy_escape(NULL, sql.p, (int)sql.len);
	/* of Distributed tables: confirmed when it is on its shard */
	if (escaped)
		n = snprintf(buf, size, "%sinsert_distributed_sync=1&query=%s", d->base, escaped);
	curl_free(escaped);
	free(sql.p);
	return n > 0 && (size_t)n < size ? 0 : -ENOMEM;
}

static int clickhouse_send(struct sink *s, struct sink_file *f)
{
	const struct clickhouse_sink *d = s->data;
	char url[4096];
	const struct http_request r = { .method = "POST",
					.url = url,
					.headers = { "Content-Encoding: gzip",
						     "Content-Type: application/octet-stream" },
					.on_answer = clickhouse_on_insert };
	struct spool_header h;
	int fd, e;

	if (d->creates)
		return clickhouse_send_statement(s, f);
	fd = spool_open(s->dfd, f->seq, true, &h);
	if (fd < 0)
		return fd;
	e = clickhouse_table_of(h.key);
	if (e >= 0)
		e = clickhouse_url(d, (enum clickhouse_table)e, url, sizeof(url));
	if (e < 0) {
		fd_close(fd);
		return e;
	}
	return http_send(s, f, fd, h.body_len, &r);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int clickhouse_open(struct sink *s, char *why, size_t why_size)
{
	const char *url = s->config->url;
	const char *path = strstr(url, "://");
	struct clickhouse_sink *d;
	int r = http_check(s, why, why_size);

	if (r < 0)
		return r;
	d = s->data = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->database = s->config->database[0] ? s->config->database : CLICKHOUSE_DATABASE;
	path = path ? strchr(path + 3, '/') : NULL;
	snprintf(d->base, sizeof(d->base), "%s%s%s", url, path ? "" : "/",
		 strchr(url, '?') ? "&" : "?");
	if (clickhouse_name_is_fine(d->database))
		return 0;
	snprintf(why, why_size, "database: %s: a name has letters, digits and _", d->database);
	return -EINVAL;
}

static void clickhouse_close(struct sink *s)
{
	free(s->data);
}

const struct sink_type sink_clickhouse = {
	.open = clickhouse_open,
	.encode = clickhouse_encode,
	.send = clickhouse_send,
	.cancel = http_cancel,
	.close = clickhouse_close,
	.in_flight_max = 1, /* statements come one after the other */
};
