/*
 * Pyroscope's Push API: for each kind of event one request with one series and its pprof. The
 * server turns labels of samples into labels of series, so they are left out unless the settings
 * ask for threads. A profile larger than what servers accept by default is sent in parts, which the
 * server adds up.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/upload/http.h"
#include "daemon/upload/sha256.h"
#include "daemon/upload/sink_types.h"
#include "push.pb-c.h"

/* uncompressed bytes: no server allows a burst of more than 2 MB */
#define PYROSCOPE_PROFILE_MAX (1900u << 10)
#define PYROSCOPE_ROWS_MAX    15000 /* samples; servers allow 16,000 */
#define PYROSCOPE_LABELS_MAX  28 /* servers allow 30 labels of a series */

static const char *const pyroscope_names[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = "process_cpu", [WIRE_EVENT_LOCK] = "mutex",
	[WIRE_EVENT_ALLOC] = "memory",	  [WIRE_EVENT_WALL] = "wall",
	[WIRE_EVENT_OFFCPU] = "offcpu",
};

/* ---- labels ---------------------------------------------------------------------------------- */

struct pyroscope_labels {
	Push__LabelPair pairs[PYROSCOPE_LABELS_MAX];
	Push__LabelPair *list[PYROSCOPE_LABELS_MAX];
	char names[PYROSCOPE_LABELS_MAX][LABEL_KEY_SIZE];
	char values[PYROSCOPE_LABELS_MAX][LABEL_VALUE_SIZE];
	size_t n;
};

static void pyroscope_add(struct pyroscope_labels *l, const char *name, const char *value)
{
	Push__LabelPair *pair = &l->pairs[l->n];
	char *to = l->names[l->n];

	if (!*value || l->n == PYROSCOPE_LABELS_MAX)
		return;
	snprintf(to, LABEL_KEY_SIZE, "%s", name);
	for (char *p = to; *p; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	snprintf(l->values[l->n], LABEL_VALUE_SIZE, "%s", value);
	push__label_pair__init(pair);
	pair->name = to;
	pair->value = l->values[l->n];
	l->list[l->n++] = pair;
}

static void pyroscope_labels(struct pyroscope_labels *l, const struct sink_interval *in,
			     enum wire_event event)
{
	const struct profile *p = in->profile;
	const char *text = p->strings[in->process->labels];
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	l->n = 0;
	pyroscope_add(l, "__name__", pyroscope_names[event]);
	pyroscope_add(l, "__delta__", "false");
	(void)labels_get(text, "service", value);
	pyroscope_add(l, "service_name", *value ? value : p->strings[in->process->name]);
	pyroscope_add(l, "pyroscope_spy", "kindling");
	if (!labels_find(text, "node", &(size_t){ 0 }))
		pyroscope_add(l, "node", in->node);
	while (labels_next_text(&text, key, value))
		if (strcmp(key, "service") != 0 && strncmp(key, "__", 2) != 0)
			pyroscope_add(l, key, value);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* An id made from the key: the same body gets the same id when it is made again. */
static int pyroscope_id(const char *key, char ret[37])
{
	char hex[2 * SHA256_SIZE + 1];
	uint8_t hash[SHA256_SIZE];
	int r = sha256_of(key, strlen(key), hash);

	if (r < 0)
		return r;
	hash[6] = (hash[6] & 0x0f) | 0x80; /* UUID version 8: custom */
	hash[8] = (hash[8] & 0x3f) | 0x80;
	sha256_hex(hash, hex);
	snprintf(ret, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
	return 0;
}

static int pyroscope_pack(struct sink *s, const struct sink_interval *in, const char *key,
			  char *pprof, size_t len, enum wire_event event, uint64_t samples)
{
	static struct pyroscope_labels labels;
	Push__PushRequest request = PUSH__PUSH_REQUEST__INIT;
	Push__RawProfileSeries series = PUSH__RAW_PROFILE_SERIES__INIT, *all = &series;
	Push__RawSample sample = PUSH__RAW_SAMPLE__INIT, *one = &sample;
	CLEANUP(freep) uint8_t *body = NULL;
	char id[37];

	pyroscope_labels(&labels, in, event);
	if (pyroscope_id(key, id) < 0)
		return -ENOMEM;
	sample.raw_profile.data = (uint8_t *)pprof;
	sample.raw_profile.len = len;
	sample.id = id;
	series.labels = labels.list;
	series.n_labels = labels.n;
	series.samples = &one;
	series.n_samples = 1;
	request.series = &all;
	request.n_series = 1;
	len = push__push_request__get_packed_size(&request);
	body = malloc(len);
	if (!body)
		return -ENOMEM;
	push__push_request__pack(&request, body);
	return sink_put(s, in, key, "application/proto", body, len, samples);
}

/* The uncompressed size, which gzip's last four bytes tell. */
static size_t pyroscope_unpacked(const char *gz, size_t len)
{
	const uint8_t *p = (const uint8_t *)gz + len - 4;

	return len < 18 ? 0 : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

/* sink_part_fn */
static int pyroscope_part(struct sink *s, const struct sink_interval *in, const struct profile *p,
			  unsigned event, unsigned part)
{
	const struct report_options options = { .events = 1u << event,
						.no_labels = !s->config->threads };
	CLEANUP(freep) char *pprof = NULL;
	char key[480], base[300];
	size_t len;
	int r;

	if (p->n_rows > PYROSCOPE_ROWS_MAX)
		return -EMSGSIZE;
	r = report_write(p, REPORT_PPROF, &options, &pprof, &len);
	if (r < 0)
		return r;
	if ((pyroscope_unpacked(pprof, len) > PYROSCOPE_PROFILE_MAX && p->n_rows > 1) ||
	    sink_is_too_large(s, len, p))
		return -EMSGSIZE;
	sink_key(in, base, sizeof(base));
	snprintf(key, sizeof(key), "%s.%s.%u", base, wire_event_names[event], part);
	return pyroscope_pack(s, in, key, pprof, len, (enum wire_event)event,
			      report_samples(p, &options));
}

static int pyroscope_encode(struct sink *s, const struct sink_interval *in)
{
	unsigned events = profile_events(in->profile);
	int r = 0;

	for (unsigned e = 0; e < WIRE_EVENT_COUNT && r == 0; e++)
		if (events & 1u << e)
			r = sink_encode_parts(s, in, 1u << e, e, pyroscope_part);
	return r;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The server reports its own limit as a bad request with a message; a proxy before it answers
 * 413. */
static enum sink_verdict pyroscope_judge(const struct http_answer *a, char *why)
{
	if (a->status == 400 && (strstr(a->body, "exceeds the size limit") ||
				 strstr(a->body, "exceeds the samples count limit")))
		return SINK_TOO_LARGE;
	return http_judge(a, why);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int pyroscope_send(struct sink *s, struct sink_file *f)
{
	static const char path[] = "/push.v1.PusherService/Push";
	const char *base = s->config->url;
	size_t len = strlen(base);
	struct http_request r = { .method = "POST",
				  .headers = { "Content-Type: application/proto",
					       "Connect-Protocol-Version: 1" },
				  .judge = pyroscope_judge };
	struct spool_header h;
	char url[600];
	int fd = spool_open(s->dfd, f->seq, true, &h);

	if (fd < 0)
		return fd;
	while (len && base[len - 1] == '/')
		len--;
	snprintf(url, sizeof(url), "%.*s%s", (int)len, base, path);
	r.url = url;
	return http_send(s, f, fd, h.body_len, &r);
}

static int pyroscope_open(struct sink *s, char *why, size_t why_size)
{
	return http_check(s, why, why_size);
}

const struct sink_type sink_pyroscope = {
	.open = pyroscope_open,
	.encode = pyroscope_encode,
	.part = pyroscope_part,
	.send = pyroscope_send,
	.cancel = http_cancel,
	.in_flight_max = 4,
};
