/* target= of a request: the JVMs that a user named, or an error that lists candidates. */
#include "daemon/discovery/word.h"
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED_MAX 8

static struct target *named[NAMED_MAX]; /* static, because requests are answered one at a time */

/* ---- errors that list JVMs ------------------------------------------------------------------- */

static enum MHD_Result answer_list(struct request *r, unsigned status, const char *sentence,
				   unsigned n)
{
	struct text_out json = { 0 };

	json_begin_object(&json, NULL);
	json_add_string(&json, "error", sentence);
	json_begin_list(&json, "targets");
	for (unsigned i = 0; i < n && i < LISTED_MAX; i++) {
		const struct jvm *jvm = &named[i]->jvm;

		json_begin_object(&json, NULL);
		json_add_i64(&json, "pid", jvm->pid);
		json_add_string(&json, "name", jvm->name);
		json_add_string(&json, "place", jvm->pod[0] ? jvm->pod : jvm->container);
		json_end_object(&json);
	}
	json_end_list(&json);
	json_add_u64(&json, "more", n > LISTED_MAX ? n - LISTED_MAX : 0);
	json_end_object(&json);
	return answer_json(r, status, &json);
}

static const char *searched; /* the word that by_resemblance() compares names with */

static int by_resemblance(const void *a, const void *b)
{
	const struct target *x = *(struct target *const *)a, *y = *(struct target *const *)b;
	unsigned p = word_resembles(&x->jvm, searched), q = word_resembles(&y->jvm, searched);

	if (p != q)
		return p < q ? 1 : -1;
	return x->jvm.pid < y->jvm.pid ? -1 : 1;
}

/* Answers that no JVM matches, with a list: running JVMs with similar names, else any running
 * ones. */
static enum MHD_Result answer_unknown(struct request *r, const char *word)
{
	struct targets *targets = host_targets(r->serve->host);
	struct target *t = NULL;
	unsigned n = 0, similar;
	char text[512];

	while ((t = targets_next(targets, t)) && n < NAMED_MAX)
		if (t->state != TARGET_GONE)
			named[n++] = t;
	searched = word;
	qsort(named, n, sizeof(named[0]), by_resemblance);
	for (similar = 0; similar < n && word_resembles(&named[similar]->jvm, word);)
		similar++;
	snprintf(text, sizeof(text), "no JVM is called \"%.300s\"; %s", word,
		 similar ? "similar names:"
		 : n	 ? "these JVMs run here:"
			 : "the daemon sees no JVM at all");
	return answer_list(r, 404, text, similar ? similar : n);
}

/* ---- one, or several ------------------------------------------------------------------------- */

struct target *api_one_target(struct request *r, const char *word)
{
	unsigned n;
	char text[512];

	word = word ? word : "";
	n = targets_named(host_targets(r->serve->host), word, false, named);
	if (n == 1)
		return named[0];
	if (n == 0) {
		(void)answer_unknown(r, word);
		return NULL;
	}
	snprintf(text, sizeof(text), "\"%.300s\" names %u JVMs; name one by its pid:", word, n);
	(void)answer_list(r, 409, text, n);
	return NULL;
}

struct selecting {
	struct request *request;
	struct selection *selection;
	const char *unknown; /* the first word that matches nothing */
	bool known;
};

bool is_selected(const struct selection *s, const struct target *t)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->pids[i] == (uint32_t)t->jvm.pid && s->start_times[i] == t->jvm.start_time)
			return true;
	return false;
}

static enum MHD_Result on_argument(void *userdata, enum MHD_ValueKind kind, const char *key,
				   const char *word)
{
	struct selecting *x = userdata;
	struct selection *s = x->selection;
	unsigned n;

	(void)kind;
	if (strcmp(key, "target") != 0 || !word || !*word)
		return MHD_YES;
	n = targets_named(host_targets(x->request->serve->host), word, x->known, named);
	for (unsigned i = 0; i < n && s->n < TARGETS_MAX; i++) {
		if (is_selected(s, named[i]))
			continue;
		s->pids[s->n] = (uint32_t)named[i]->jvm.pid;
		s->start_times[s->n++] = named[i]->jvm.start_time;
	}
	if (!n)
		x->unknown = word;
	return x->unknown ? MHD_NO : MHD_YES;
}

static int select_named(struct request *r, struct selection *ret, bool known)
{
	struct selecting x = { .request = r, .selection = ret, .known = known };

	ret->n = 0;
	MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, on_argument, &x);
	if (!x.unknown)
		return 0;
	(void)answer_unknown(r, x.unknown);
	return -ENOENT;
}

int api_select_quietly(struct request *r, struct selection *ret)
{
	struct selecting x = { .request = r, .selection = ret };

	ret->n = 0;
	MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, on_argument, &x);
	return x.unknown ? -ENOENT : 0;
}

int api_select(struct request *r, struct selection *ret)
{
	return select_named(r, ret, false);
}

int api_select_known(struct request *r, struct selection *ret)
{
	return select_named(r, ret, true);
}
