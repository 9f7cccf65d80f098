/* What several types of sinks share: reports as bodies, and their keys. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/report/event_names.h"
#include "daemon/upload/sink.h"

void sink_key_word(const char *s, char *buf, size_t size)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = 0;

	for (; *s && n + 1 < size; s++, n++)
		buf[n] = strchr(fine, *s) && (n || *s != '.') ? *s : '-';
	buf[n] = '\0';
}

void sink_key_service(const struct sink_interval *in, char *buf, size_t size)
{
	const char *const *strings = in->profile->strings;
	char service[LABEL_VALUE_SIZE];

	(void)labels_get(strings[in->process->labels], "service", service);
	sink_key_word(*service ? service : strings[in->process->name], buf, size);
}

void sink_key(const struct sink_interval *in, char *buf, size_t size)
{
	const struct profile_process *q = in->process;
	time_t seconds = (time_t)(in->begin_real_ns / NS_PER_S);
	char name[96], time[40];
	struct tm tm;

	sink_key_service(in, name, sizeof(name));
	strftime(time, sizeof(time), "%Y-%m-%dT%H-%M-%SZ", gmtime_r(&seconds, &tm));
	snprintf(buf, size, "%s_%u-%llu_%s", name, q->pid, (unsigned long long)q->start_time, time);
}

int sink_choose_format(struct sink *s, enum report_format other, char *why, size_t why_size)
{
	int format = s->config->format[0] ? report_format_by_name(s->config->format) : (int)other;

	if (format < 0) {
		char list[200];

		snprintf(why, why_size, "format: there is no %s; the formats are %s",
			 s->config->format, report_format_list(false, list, sizeof(list)));
		return -EINVAL;
	}
	if (s->config->events[0] && format == REPORT_JFR &&
	    !report_takes(REPORT_JFR, s->events, why, why_size))
		return -EINVAL;
	s->format = (enum report_format)format;
	return 0;
}

static int encode_put(struct sink *s, const struct sink_interval *in, unsigned events, bool named)
{
	const struct report_options options = { .events = events };
	CLEANUP(freep) char *body = NULL;
	char key[480], base[300];
	size_t len;
	int r = report_write(in->profile, s->format, &options, &body, &len);

	if (r < 0)
		return r;
	sink_key(in, base, sizeof(base));
	snprintf(key, sizeof(key), "%s%s%s.%s", base, named ? "." : "",
		 named ? wire_event_names[report_event_of(events)] : "",
		 report_format_name(s->format));
	return sink_put(s, in, key, report_content_type(s->format), body, len,
			report_samples(in->profile, &options));
}

bool sink_is_too_large(const struct sink *s, size_t len, const struct profile *p)
{
	return s->body_max && len > s->body_max && p->n_rows > 1;
}

/* A new profile of @p's rows with odd numbers (@odd 1), even numbers (0) or any (-1), and of
 * @events only. */
static int encode_some(const struct profile *p, unsigned events, int odd, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *part = NULL;
	CLEANUP(freep) bool *rows = calloc((size_t)p->n_rows + 1, sizeof(*rows));
	const struct profile_filter filter = { .events = events, .rows = rows };
	int r = rows ? profile_new(&part) : -ENOMEM;

	for (uint32_t i = 0; rows && i < p->n_rows; i++)
		rows[i] = odd < 0 || (i & 1) == (uint32_t)odd;
	if (r == 0)
		r = profile_merge(part, p, &filter);
	if (r == 0)
		*ret = TAKE_PTR(part);
	return r;
}

/* Replaces @p by its rows with odd, or even, numbers. */
static int encode_half(struct profile **p, int odd)
{
	struct profile *half;
	int r = encode_some(*p, 0, odd, &half);

	if (r < 0)
		return r;
	profile_free(*p);
	*p = half;
	return 0;
}

static int encode_both(struct sink *s, const struct sink_interval *in, sink_part_fn *fn);

/* Passes the part in->part to @fn, or, if that is too large, its halves. */
static int encode_part(struct sink *s, const struct sink_interval *in, sink_part_fn *fn)
{
	int r = fn(s, in, in->profile, in->word, in->part);

	return r == -EMSGSIZE && in->profile->n_rows > 1 ? encode_both(s, in, fn) : r;
}

static int encode_both(struct sink *s, const struct sink_interval *in, sink_part_fn *fn)
{
	int r = 0;

	for (int odd = 0; odd < 2 && r == 0; odd++) {
		CLEANUP(profile_freep) struct profile *half = NULL;
		struct sink_interval of_half = *in;

		r = encode_some(in->profile, 0, odd, &half);
		if (r < 0)
			return r;
		of_half.profile = half;
		of_half.process = &half->processes[0];
		of_half.part = 2 * in->part + (unsigned)odd;
		r = encode_part(s, &of_half, fn);
	}
	return r;
}

int sink_encode_parts(struct sink *s, const struct sink_interval *in, unsigned events,
		      unsigned word, sink_part_fn *fn)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct sink_interval all = *in;
	int r = encode_some(in->profile, events, -1, &p);

	if (r < 0)
		return r;
	all.profile = p;
	all.process = &p->processes[0];
	all.events = events;
	all.word = word;
	all.part = 1;
	return encode_part(s, &all, fn);
}

int sink_encode_halves(struct sink *s, const struct sink_interval *in, sink_part_fn *fn)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct sink_interval part = *in;
	int r = encode_some(in->profile, in->events, -1, &p);

	/* the bits of in->part below the highest one select the half at each split */
	for (int bit = 30 - __builtin_clz(in->part); bit >= 0 && r == 0; bit--)
		r = encode_half(&p, in->part >> bit & 1);
	if (r < 0)
		return r;
	part.profile = p;
	part.process = &p->processes[0];
	return p->n_rows < 2 ? -EMSGSIZE : encode_both(s, &part, fn);
}

int sink_encode_report(struct sink *s, const struct sink_interval *in)
{
	unsigned events = profile_events(in->profile);
	char why[200];
	int r = 0;

	if (report_takes(s->format, 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK, why,
			 sizeof(why)) &&
	    report_takes(s->format, events, why, sizeof(why)))
		return encode_put(s, in, events, false);
	for (unsigned e = 0; e < WIRE_EVENT_COUNT && r == 0; e++)
		if (events & 1u << e && report_takes(s->format, 1u << e, why, sizeof(why)))
			r = encode_put(s, in, 1u << e, true);
	return r;
}
