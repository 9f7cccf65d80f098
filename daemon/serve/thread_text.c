/* Threads in JSON, in the same form in all answers; docs/api.md describes it. */
#include <stdio.h>
#include "daemon/serve/serve_priv.h"

#define WORDS_MAX 48

static void thread_number_text(struct text_out *to, const char *key, uint32_t number)
{
	if (number)
		json_add_u64(to, key, number);
	else
		json_add_null(to, key);
}

void thread_ids_text(struct text_out *to, const struct target *t, uint32_t number)
{
	struct host_thread ids = host_thread_of(t, number);

	thread_number_text(to, "tid", ids.tid);
	thread_number_text(to, "ns_tid", ids.ns_tid);
	if (ids.virtual_id || ids.is_virtual)
		thread_number_text(to, "virtual_id", ids.virtual_id);
}

void thread_name_text(struct text_out *to, const char *key, const struct target *t, uint32_t number,
		      const char *name)
{
	struct host_thread ids = host_thread_of(t, number);
	char words[WORDS_MAX];

	if (name[0] || !ids.is_virtual) {
		json_add_string(to, key, name);
	} else if (ids.virtual_id) {
		snprintf(words, sizeof(words), "virtual #%u", ids.virtual_id);
		json_add_string(to, key, words);
	} else {
		json_add_string(to, key, "[unnamed virtual threads]");
	}
}

void thread_text(struct text_out *to, const struct target *t, uint32_t number, const char *name)
{
	thread_ids_text(to, t, number);
	thread_name_text(to, "thread", t, number, name);
}
