/*
 * ClickHouse over HTTP. For each interval and table there is one body, or several if it is large:
 * rows of many JVMs, RowBinary in zstd or gzip. One request inserts one body. Rows that arrive
 * twice count once (docs/decisions/0019), so whatever is not confirmed is sent again. With
 * `create`, missing tables are created, one statement in each request, which takes the place of the
 * body that failed without them.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "daemon/clickhouse/rows.h"
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/upload/clickhouse_body.h"
#include "daemon/upload/http.h"
#include "daemon/upload/sink_types.h"

#define CLICKHOUSE_DATABASE "kindling"
#define CLICKHOUSE_SUFFIX   ".rowbinary"
/* Approximate sizes of one body, compressed and not: proxies accept a mebibyte by default, and
 * the server holds a whole insert in memory. */
#define BODY_BYTES     (900u << 10)
#define BODY_RAW_BYTES (64u << 20)
/* Rows of stacks are sent again after this time, in case that the server lost what it confirmed. */
#define SENT_KEEP_NS (600 * NS_PER_S)

struct clickhouse_sink {
	char base[540]; /* the url up to the "?" or "&" that our parameters follow */
	const char *database;
	bool creates; /* the next statement is @step */
	unsigned step;
	enum clickhouse_form form; /* in which the next body is made, and those in zstd are sent */
	bool takes_form; /* the server has confirmed a body in this form */
	struct clickhouse_body bodies[CLICKHOUSE_TABLES]; /* of the current interval */
	uint64_t put; /* bodies put since the program began: makes their keys unique */
	struct clickhouse_sent *sent; /* the stacks whose rows the server has */
	uint64_t sent_mono_ns; /* when @sent was empty last */
	uint64_t sent_lost; /* sink.lost_bodies at that time */
	bool taking; /* an interval is being taken */
};

/* ---- stacks that need not be sent ------------------------------------------------------------ */

/* Begins an interval. All bodies so far have been confirmed if none waits and none was lost: only
 * then the server has their stacks. */
static void clickhouse_begin_interval(struct sink *s)
{
	struct clickhouse_sink *d = s->data;
	uint64_t now = clock_mono_ns();

	d->taking = true;
	if (!s->n_files && s->lost_bodies == d->sent_lost && now - d->sent_mono_ns < SENT_KEEP_NS) {
		clickhouse_sent_confirm(d->sent);
		return;
	}
	clickhouse_sent_forget(d->sent);
	d->sent_lost = s->lost_bodies;
	d->sent_mono_ns = now;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static const char *const clickhouse_suffixes[] = { [CLICKHOUSE_ZSTD] = CLICKHOUSE_SUFFIX ".zst",
						   [CLICKHOUSE_GZIP] = CLICKHOUSE_SUFFIX ".gz" };

/* Puts a body with a key such as "2026-11-22T20-04-00Z_3.samples.rowbinary.zst", which
 * clickhouse_table_of() reads. */
static int clickhouse_put(struct sink *s, const struct sink_interval *in,
			  enum clickhouse_table table, const struct clickhouse_body *b)
{
	struct clickhouse_sink *d = s->data;
	time_t seconds = (time_t)(in->begin_real_ns / NS_PER_S);
	char time[40], key[200];
	struct tm tm;

	strftime(time, sizeof(time), "%Y-%m-%dT%H-%M-%SZ", gmtime_r(&seconds, &tm));
	snprintf(key, sizeof(key), "%s_%llu.%s%s", time, (unsigned long long)++d->put,
		 clickhouse_table_names[table], clickhouse_suffixes[b->pack.form]);
	return sink_put(s, in, key, "application/octet-stream", b->pack.bytes, b->pack.len,
			b->samples);
}

/* Puts the table's body and begins the next one. */
static int clickhouse_flush_one(struct sink *s, const struct sink_interval *in,
				enum clickhouse_table table)
{
	struct clickhouse_sink *d = s->data;
	struct clickhouse_body *b = &d->bodies[table];
	const struct sink_interval of_all = { .begin_real_ns = in->begin_real_ns,
					      .end_real_ns = in->end_real_ns,
					      .node = in->node };
	int r = clickhouse_body_end(b);

	if (r == 0) {
		sink_unhold(s, b->samples);
		r = clickhouse_put(s, &of_all, table, b);
	}
	if (r < 0)
		s->lost_bodies++;
	clickhouse_body_deinit(b);
	return r;
}

static void clickhouse_flush(struct sink *s, const struct sink_interval *in)
{
	struct clickhouse_sink *d = s->data;

	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++) {
		if (in && d->bodies[i].raw)
			(void)clickhouse_flush_one(s, in, (enum clickhouse_table)i);
		clickhouse_body_deinit(&d->bodies[i]);
	}
	d->taking = false;
}

static bool clickhouse_body_is_full(const struct sink *s, const struct clickhouse_body *b)
{
	return b->pack.len >= BODY_BYTES || b->raw >= BODY_RAW_BYTES ||
	       (s->body_max && b->pack.len >= s->body_max / 2);
}

/* The ledger counts the rows of samples; the other two tables only describe them. */
static int clickhouse_add(struct sink *s, const struct sink_interval *in,
			  const struct clickhouse_rows *rows, enum clickhouse_table table)
{
	struct clickhouse_sink *d = s->data;
	struct clickhouse_body *b = &d->bodies[table];
	int r;

	if (!rows->rows[table])
		return 0;
	if (!b->raw)
		b->pack.form = d->form;
	if (clickhouse_body_add(b, rows->tables[table].p, rows->tables[table].len) < 0) {
		clickhouse_body_deinit(
			b); /* the rows that were held are dropped at the end of the interval */
		s->lost_bodies++;
		return -ENOMEM;
	}
	if (table == CLICKHOUSE_SAMPLES) {
		sink_hold(s, rows->samples);
		b->samples += rows->samples;
	}
	r = clickhouse_body_is_full(s, b) ? clickhouse_flush_one(s, in, table) : 0;
	return r;
}

/* For `sink test`: one body, of samples, in the form that works everywhere. */
static int clickhouse_encode_test(struct sink *s, const struct sink_interval *in)
{
	struct clickhouse_rows rows;
	struct clickhouse_body b = { .pack.form = CLICKHOUSE_GZIP };
	int r = clickhouse_rows_test(in->profile, in->node, &rows);

	b.samples = rows.samples;
	if (r == 0)
		r = clickhouse_body_add(&b, rows.tables[CLICKHOUSE_SAMPLES].p,
					rows.tables[CLICKHOUSE_SAMPLES].len);
	if (r == 0)
		r = clickhouse_body_end(&b);
	if (r == 0)
		r = clickhouse_put(s, in, CLICKHOUSE_SAMPLES, &b);
	clickhouse_body_deinit(&b);
	clickhouse_rows_deinit(&rows);
	return r;
}

static int clickhouse_encode(struct sink *s, const struct sink_interval *in)
{
	const struct clickhouse_sink *d = s->data;
	char label[LABEL_VALUE_SIZE];
	const struct profile *p = in->profile;
	struct clickhouse_rows rows;
	bool is_known = *labels_get(p->strings[in->process->labels], "node", label);
	int r;

	if (s->test_encodes)
		return clickhouse_encode_test(s, in);
	if (!d->taking)
		clickhouse_begin_interval(s);
	r = clickhouse_rows_make(p, is_known ? NULL : in->node, d->sent, &rows);
	if (r < 0)
		s->lost_bodies++; /* stacks were added, but not their rows */
	for (unsigned i = 0; i < CLICKHOUSE_TABLES && r == 0; i++)
		r = clickhouse_add(s, in, &rows, (enum clickhouse_table)i);
	clickhouse_rows_deinit(&rows);
	return r;
}

/* The table and the form in a key such as "..._3.samples.rowbinary.zst". -EBADMSG: it has none. */
static int clickhouse_table_of(const char *key, enum clickhouse_form *form)
{
	char end[64];

	for (int i = 0; i < CLICKHOUSE_TABLES; i++)
		for (*form = CLICKHOUSE_ZSTD; *form <= CLICKHOUSE_GZIP; ++*form) {
			size_t len = strlen(key), n;

			snprintf(end, sizeof(end), ".%s%s", clickhouse_table_names[i],
				 clickhouse_suffixes[*form]);
			n = strlen(end);
			if (len > n && strcmp(key + len - n, end) == 0)
				return i;
		}
	return -EBADMSG;
}

static int clickhouse_halve(struct sink *s, const struct sink_interval *in,
			    const struct spool_header *h, int fd)
{
	enum clickhouse_form form;
	int table = clickhouse_table_of(h->key, &form), r;
	struct clickhouse_body halves[2];

	if (table < 0)
		return table;
	r = clickhouse_body_cut(fd, h->body_len, form, (enum clickhouse_table)table, halves);
	for (int i = 0; i < 2 && r == 0; i++)
		r = clickhouse_put(s, in, (enum clickhouse_table)table, &halves[i]);
	for (int i = 0; i < 2; i++)
		clickhouse_body_deinit(&halves[i]);
	return r;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Error 60 is "no such table", 81 "no such database". */
static void clickhouse_on_insert(struct sink *s, struct http_answer *a)
{
	struct clickhouse_sink *d = s->data;

	if (!s->config->create || a->status < 400 ||
	    (strncmp(a->body, "Code: 60,", 9) != 0 && strncmp(a->body, "Code: 81,", 9) != 0 &&
	     strncmp(a->body, "Code: 60.", 9) != 0 && strncmp(a->body, "Code: 81.", 9) != 0))
		return;
	s->lost_bodies++; /* the tables were there once, and all that was in them is gone */
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

/* A statement was sent in the place of the body, which is tried again. */
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

/*
 * If a proxy drops the parameters, or a constraint forbids the setting, a body in zstd gets one
 * error or another. So until one is confirmed each error of the server's may be because of the
 * form; if the other form does not help either, it was not. A proxy's own 401, 429 or 503 says
 * nothing about the form.
 */
static bool clickhouse_is_of_form(const struct http_answer *a)
{
	char why[SINK_TEXT_MAX];

	return http_judge(a, why) == SINK_REFUSED || strncmp(a->body, "Code: ", 6) == 0;
}

/* The answer to a body that was made in zstd, in whichever form it was sent. */
static void clickhouse_on_try(struct sink *s, struct http_answer *a)
{
	struct clickhouse_sink *d = s->data;

	clickhouse_on_insert(s, a);
	if (a->status == 200) {
		d->takes_form = true;
	} else if (!d->creates && clickhouse_is_of_form(a)) {
		if (d->form == CLICKHOUSE_ZSTD && !a->retry_after_ns)
			a->retry_after_ns = NS_PER_MS;
		d->form = d->form == CLICKHOUSE_ZSTD ? CLICKHOUSE_GZIP : CLICKHOUSE_ZSTD;
	}
}

static enum sink_verdict clickhouse_judge_zstd(const struct http_answer *a, char *why)
{
	enum sink_verdict v = http_judge(a, why);

	return v == SINK_REFUSED ? SINK_RETRY : v;
}

static int clickhouse_url(const struct clickhouse_sink *d, enum clickhouse_table table,
			  enum clickhouse_form form, char *buf, size_t size)
{
	struct text_out sql = { 0 };
	char *escaped = NULL;
	int n = -1;

	clickhouse_put_insert(&sql, d->database, table);
	if (!sql.failed)
		escaped = curl_easy_escape(NULL, sql.p, (int)sql.len);
	/* inserts into Distributed tables are confirmed only when the data is on its shard */
	if (escaped)
		n = snprintf(buf, size, "%s%sinsert_distributed_sync=1&query=%s", d->base,
			     form == CLICKHOUSE_ZSTD ? CLICKHOUSE_ZSTD_PARAMETERS : "", escaped);
	curl_free(escaped);
	free(sql.p);
	return n > 0 && (size_t)n < size ? 0 : -ENOMEM;
}

/* Sends the @len bytes of @fd, which it takes. @is_tried: they were made in zstd, which the server
 * has not confirmed yet. */
static int clickhouse_send_as(struct sink *s, struct sink_file *f, int fd, size_t len,
			      enum clickhouse_table table, enum clickhouse_form form, bool is_tried)
{
	char url[4096];
	const struct http_request r = {
		.method = "POST",
		.url = url,
		.headers = { "Content-Type: application/octet-stream",
			     form == CLICKHOUSE_GZIP ? "Content-Encoding: gzip" : NULL },
		.judge = is_tried && form == CLICKHOUSE_ZSTD ? clickhouse_judge_zstd : NULL,
		.on_answer = is_tried ? clickhouse_on_try : clickhouse_on_insert,
	};
	int e = clickhouse_url(s->data, table, form, url, sizeof(url));

	if (e == 0)
		return http_send(s, f, fd, len, &r);
	fd_close(fd);
	return e;
}

static int clickhouse_send(struct sink *s, struct sink_file *f)
{
	const struct clickhouse_sink *d = s->data;
	enum clickhouse_form made;
	struct spool_header h;
	int fd, gzip, table;
	size_t len;

	if (d->creates)
		return clickhouse_send_statement(s, f);
	fd = spool_open(s->dfd, f->seq, true, &h);
	if (fd < 0)
		return fd;
	table = clickhouse_table_of(h.key, &made);
	if (table < 0) {
		fd_close(fd);
		return table;
	}
	if (made == d->form || made == CLICKHOUSE_GZIP)
		return clickhouse_send_as(s, f, fd, h.body_len, (enum clickhouse_table)table, made,
					  made == CLICKHOUSE_ZSTD && !d->takes_form);
	gzip = clickhouse_body_to_gzip(fd, h.body_len, &len);
	fd_close(fd);
	return gzip < 0 ? gzip
			: clickhouse_send_as(s, f, gzip, len, (enum clickhouse_table)table,
					     CLICKHOUSE_GZIP, !d->takes_form);
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
	r = clickhouse_sent_new(&d->sent);
	if (r < 0)
		return r;
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
	struct clickhouse_sink *d = s->data;

	if (d) {
		clickhouse_flush(s, NULL);
		clickhouse_sent_free(d->sent);
	}
	free(d);
}

const struct sink_type sink_clickhouse = {
	.open = clickhouse_open,
	.encode = clickhouse_encode,
	.flush = clickhouse_flush,
	.halve = clickhouse_halve,
	.send = clickhouse_send,
	.cancel = http_cancel,
	.close = clickhouse_close,
	.in_flight_max = 1, /* statements are executed one after the other */
};
