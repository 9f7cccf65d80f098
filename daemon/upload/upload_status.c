/* The status of a sink: taken = delivered + spooled + unconfirmed + sum(dropped), in samples. */
#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/report/text_out.h"
#include "daemon/upload/sink.h"

/* Samples that may have arrived: their answer is outstanding, or was lost. */
static uint64_t status_unconfirmed(const struct sink *s)
{
	uint64_t n = 0;

	for (const struct sink_file *f = s->files; f; f = f->next)
		if (!f->left && (f->in_flight || f->unknown))
			n += f->samples;
	return n;
}

/* Age in seconds of the oldest undelivered body; its interval's begin counts. */
static double status_oldest_s(const struct sink *s)
{
	uint64_t now = clock_real_ns();

	return s->files && s->files->begin_real_ns < now
		       ? (double)(now - s->files->begin_real_ns) / 1e9
		       : 0;
}

static void upload_status_number(struct text_out *t, const char *key, uint64_t n)
{
	text_printf(t, ",\"%s\":%llu", key, (unsigned long long)n);
}

void sink_status(const struct sink *s, struct text_out *t)
{
	const struct ledger *l = &s->ledger;
	uint64_t waiting = status_unconfirmed(s);
	const char *error = s->dead[0] ? s->dead : s->error;

	text_put(t, "{\"name\":");
	text_json(t, s->config->name);
	text_put(t, ",\"type\":");
	text_json(t, sink_type_names[s->config->type]);
	upload_status_number(t, "taken", l->taken);
	upload_status_number(t, "delivered", l->delivered);
	upload_status_number(t, "spooled", l->in_spool - waiting);
	upload_status_number(t, "unconfirmed", waiting + l->lost_unconfirmed);
	text_put(t, ",\"dropped\":{");
	for (int i = 0, n = 0; i < LEDGER_CAUSE_COUNT; i++)
		if (l->dropped[i])
			text_printf(t, "%s\"%s\":%llu", n++ ? "," : "", ledger_cause_names[i],
				    (unsigned long long)l->dropped[i]);
	text_put(t, "}");
	text_printf(t, ",\"oldest_s\":%.1f", status_oldest_s(s));
	text_put(t, ",\"last_error\":");
	if (error[0])
		text_json(t, error);
	else
		text_put(t, "null");
	upload_status_number(t, "files", s->n_files);
	upload_status_number(t, "bytes", s->bytes);
	upload_status_number(t, "taken_to_ns", l->cursor_ns);
	text_put(t, s->dead[0] ? ",\"works\":false}" : ",\"works\":true}");
}
