/* Threads in JSON, in the same form in all answers; docs/api.md describes it. */
#include <stdio.h>
#include "daemon/serve/serve_priv.h"

#define WORDS_MAX 48

void thread_ids_text(struct text_out *to, const struct target *t, uint32_t number)
{
	struct host_thread ids = host_thread_of(t, number);

	if (ids.tid)
		text_printf(to, "\"tid\":%u", ids.tid);
	else
		text_put(to, "\"tid\":null");
	if (ids.ns_tid)
		text_printf(to, ",\"ns_tid\":%u", ids.ns_tid);
	else
		text_put(to, ",\"ns_tid\":null");
	if (ids.virtual_id)
		text_printf(to, ",\"virtual_id\":%u", ids.virtual_id);
	else if (ids.is_virtual)
		text_put(to, ",\"virtual_id\":null");
}

void thread_name_text(struct text_out *to, const struct target *t, uint32_t number,
		      const char *name)
{
	struct host_thread ids = host_thread_of(t, number);
	char words[WORDS_MAX];

	if (name[0] || !ids.is_virtual) {
		text_json(to, name);
	} else if (ids.virtual_id) {
		snprintf(words, sizeof(words), "virtual #%u", ids.virtual_id);
		text_json(to, words);
	} else {
		text_put(to, "\"[unnamed virtual threads]\"");
	}
}

void thread_text(struct text_out *to, const struct target *t, uint32_t number, const char *name)
{
	thread_ids_text(to, t, number);
	text_put(to, ",\"thread\":");
	thread_name_text(to, t, number, name);
}
