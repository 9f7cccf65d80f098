/* The status of a sink: taken = delivered + spooled + unconfirmed + sum(dropped), in samples. */
#include "daemon/ground/clock.h"
#include "daemon/report/json_out.h"
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

void sink_status(const struct sink *s, struct text_out *t)
{
	const struct ledger *l = &s->ledger;
	uint64_t waiting = status_unconfirmed(s);
	const char *error = s->dead[0] ? s->dead : s->error;

	json_begin_object(t, NULL);
	json_add_string(t, "name", s->config->name);
	json_add_string(t, "type", sink_type_names[s->config->type]);
	json_add_u64(t, "taken", l->taken);
	json_add_u64(t, "delivered", l->delivered);
	json_add_u64(t, "spooled", l->in_spool - waiting);
	json_add_u64(t, "unconfirmed", waiting + l->lost_unconfirmed);
	json_begin_object(t, "dropped");
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++)
		if (l->dropped[i])
			json_add_u64(t, ledger_cause_names[i], l->dropped[i]);
	json_end_object(t);
	json_add_fixed(t, "oldest_s", status_oldest_s(s), 1);
	json_add_string_or_null(t, "last_error", error);
	json_add_u64(t, "files", s->n_files);
	json_add_u64(t, "bytes", s->bytes);
	json_add_u64(t, "taken_to_ns", l->cursor_ns);
	json_add_bool(t, "works", !s->dead[0]);
	json_end_object(t);
}
