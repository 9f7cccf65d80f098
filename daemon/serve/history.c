/*
 * /v1/history: what the history contains; and the JVMs that a query about the past selects, also
 * those that ended days ago. Runs in a child (apart.c).
 */
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/labels.h"

#define CONTAINER_ID_MIN 12

/* A JVM that is alive or in the history; strings are borrowed. */
struct who {
	uint32_t pid;
	uint64_t start_time;
	const char *name, *container_id, *container, *pod, *labels;
	bool alive;
};

struct history_processes {
	struct who *list;
	uint32_t n, cap;
	struct store_process *stored;
	uint32_t n_stored;
};

static void history_free_processes(struct history_processes *all)
{
	free(all->list);
	store_processes_free(all->stored, all->n_stored);
}

static int history_add_process(struct history_processes *all, const struct who *who)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->list[i].pid == who->pid && all->list[i].start_time == who->start_time)
			return 0;
	if (all->n == all->cap) {
		uint32_t cap = all->cap ? 2 * all->cap : 256;
		struct who *p = realloc(all->list, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		all->list = p;
		all->cap = cap;
	}
	all->list[all->n++] = *who;
	return 0;
}

/* Lists the known JVMs first, because their labels are newer than those in the history. */
static int history_find_processes(struct host *h, uint64_t from, uint64_t to,
				  struct history_processes *all)
{
	struct targets *targets = host_targets(h);
	struct target *t = NULL;
	int r = 0;

	while (r == 0 && (t = targets_next_known(targets, t))) {
		const struct who who = {
			(uint32_t)t->jvm.pid,	    t->jvm.start_time,	    t->jvm.name,
			t->jvm.container_id,	    t->jvm.container,	    t->jvm.pod,
			t->labels ? t->labels : "", t->state != TARGET_GONE
		};

		r = history_add_process(all, &who);
	}
	if (r == 0 && host_store(h))
		r = store_processes(host_store(h), from, to, &all->stored, &all->n_stored);
	for (uint32_t i = 0; r == 0 && i < all->n_stored; i++) {
		const struct store_process *p = &all->stored[i];
		const struct who who = { p->pid,       p->start_time, p->name,	 p->container_id,
					 p->container, p->pod,	      p->labels, false };

		r = history_add_process(all, &who);
	}
	return r;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_pod(const char *pod, const char *word)
{
	const char *slash = strchr(pod, '/');

	return *word && (strcmp(pod, word) == 0 || (slash && strcmp(slash + 1, word) == 0));
}

static bool is_container(const struct who *who, const char *word)
{
	size_t len = strlen(word);

	return len && (strcmp(who->container, word) == 0 ||
		       (len >= CONTAINER_ID_MIN && strncmp(who->container_id, word, len) == 0));
}

/* The keys that select JVMs by a value, in the order of KEY_x. */
static const char *const keys[] = {
	"service", "pod", "container", "namespace", "version", "image"
};
enum {
	KEY_SERVICE,
	KEY_POD,
	KEY_CONTAINER,
	KEY_NAMESPACE,
	KEY_VERSION,
	KEY_IMAGE,
	KEY_COUNT,
	KEY_NAMES = KEY_NAMESPACE /* the keys before it are also matched by target= */
};

static bool has_value(const struct who *who, int key, const char *word)
{
	if (key == KEY_POD && is_pod(who->pod, word))
		return true;
	if (key == KEY_CONTAINER && is_container(who, word))
		return true;
	return labels_is(who->labels, keys[key], word);
}

static bool serve_history_is_called(const struct who *who, const char *word)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", who->pid);
	if (strcmp(pid, word) == 0 || strcmp(who->name, word) == 0)
		return true;
	for (int key = 0; key < KEY_NAMES; key++)
		if (has_value(who, key, word))
			return true;
	return false;
}

/* The values that a request gives for one key: whether there are any, and whether one matches. */
struct values {
	const struct who *who;
	const char *key;
	int number; /* KEY_x, or KEY_COUNT for target= */
	bool any, hit;
};

static enum MHD_Result on_value(void *userdata, enum MHD_ValueKind kind, const char *key,
				const char *word)
{
	struct values *v = userdata;

	(void)kind;
	if (strcmp(key, v->key) != 0 || !word || !*word)
		return MHD_YES;
	v->any = true;
	v->hit |= v->number == KEY_COUNT ? serve_history_is_called(v->who, word)
					 : has_value(v->who, v->number, word);
	return MHD_YES;
}

static bool serve_history_passes(struct request *r, const struct who *who, const char *key,
				 int number)
{
	struct values v = { who, key, number, false, false };

	MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, on_value, &v);
	return !v.any || v.hit;
}

/* ---- selected JVMs --------------------------------------------------------------------------- */

static bool in_selection(const struct selection *s, const struct who *who)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->pids[i] == who->pid && s->start_times[i] == who->start_time)
			return true;
	return false;
}

static int serve_history_take(struct history_selection *to, const struct who *who)
{
	uint32_t *pids = realloc(to->pids, (to->n + 1) * sizeof(*pids));
	uint64_t *times;

	if (!pids)
		return -ENOMEM;
	to->pids = pids;
	times = realloc(to->start_times, (to->n + 1) * sizeof(*times));
	if (!times)
		return -ENOMEM;
	to->start_times = times;
	pids[to->n] = who->pid;
	times[to->n++] = who->start_time;
	return 0;
}

static int serve_history_choose(struct request *r, const struct history_processes *all,
				const struct selection *known, struct history_selection *ret)
{
	bool by_target = argument(r, "target") != NULL;
	int e = 0;

	for (uint32_t i = 0; i < all->n && e == 0; i++) {
		const struct who *who = &all->list[i];
		bool wanted = !by_target || in_selection(known, who) ||
			      (!known->n && serve_history_passes(r, who, "target", KEY_COUNT));

		for (int key = 0; key < KEY_COUNT && wanted; key++)
			wanted = serve_history_passes(r, who, keys[key], key);
		e = wanted ? serve_history_take(ret, who) : 0;
	}
	return e;
}

void history_selection_free(struct history_selection *s)
{
	free(s->pids);
	free(s->start_times);
}

static int history_refuse_unknown(struct request *r)
{
	const char *key = "target", *word = argument(r, "target");

	for (int i = 0; i < KEY_COUNT; i++)
		if (argument(r, keys[i])) {
			key = keys[i];
			word = argument(r, key);
		}
	(void)answer_error(
		r, 404,
		"no JVM of that time has the %s \"%.200s\"; kindling history lists what there is",
		key, word ? word : "");
	return -ENOENT;
}

int history_select(struct request *r, uint64_t from, uint64_t to, struct selection *known,
		   struct history_selection *ret)
{
	struct history_processes all = { 0 };
	bool by_key = false;
	int e = 0;

	*ret = (struct history_selection){ 0 };
	for (int i = 0; i < KEY_COUNT; i++)
		by_key |= argument(r, keys[i]) != NULL;
	known->n = 0;
	if (argument(r, "target") && api_select_quietly(r, known) < 0)
		known->n = 0;
	if (!by_key && (known->n || !argument(r, "target"))) {
		for (uint32_t i = 0; i < known->n && e == 0; i++)
			e = serve_history_take(
				ret, &(struct who){ .pid = known->pids[i],
						    .start_time = known->start_times[i] });
		if (e < 0)
			(void)answer_error(r, 503, "kindlingd is busy, try again: %s",
					   strerror(-e));
		return e;
	}
	e = history_find_processes(r->serve->host, from, to, &all);
	if (e == 0)
		e = serve_history_choose(r, &all, known, ret);
	if (e < 0)
		(void)answer_error(r, 503, "kindlingd is busy, try again: %s", strerror(-e));
	else if (!ret->n && !by_key)
		e = api_select(r, known); /* lists the JVMs that can be named */
	else if (!ret->n)
		e = history_refuse_unknown(r);
	for (known->n = 0; known->n < ret->n && known->n < TARGETS_MAX; known->n++) {
		known->pids[known->n] = ret->pids[known->n];
		known->start_times[known->n] = ret->start_times[known->n];
	}
	history_free_processes(&all);
	return e;
}

/* ---- /v1/history ----------------------------------------------------------------------------- */

static bool is_alive(struct host *h, const struct store_process *p)
{
	struct target *t = NULL;

	while ((t = targets_next(host_targets(h), t)))
		if ((uint32_t)t->jvm.pid == p->pid && t->jvm.start_time == p->start_time)
			return t->state != TARGET_GONE;
	return false;
}

static void process_json(struct text_out *to, struct host *h, const struct store_process *p)
{
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];
	const char *text = p->labels;

	json_begin_object(to, NULL);
	json_add_u64(to, "pid", p->pid);
	json_add_u64(to, "ns_pid", p->ns_pid);
	json_add_string(to, "name", p->name);
	json_add_string(to, "service", labels_get(p->labels, "service", value));
	json_add_string(to, "pod", p->pod);
	json_add_string(to, "container", p->container);
	json_add_string(to, "container_id", p->container_id);
	json_add_string(to, "jdk", p->jdk);
	json_add_bool(to, "alive", is_alive(h, p));
	json_add_double(to, "begin_s", (double)p->begin_real_ns / 1e9);
	json_add_double(to, "end_s", (double)p->end_real_ns / 1e9);
	json_add_u64(to, "windows", p->windows);
	json_add_u64(to, "samples", p->samples);
	json_add_u64(to, "bytes", p->bytes);
	json_begin_object(to, "labels");
	while (labels_next_text(&text, key, value))
		json_add_string(to, key, value);
	json_end_object(to);
	json_end_object(to);
}

static int by_name_and_time(const void *a, const void *b)
{
	const struct store_process *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	if (r)
		return r;
	return x->begin_real_ns < y->begin_real_ns ? -1 : x->begin_real_ns > y->begin_real_ns;
}

static bool is_listed(const struct history_selection *s, const struct store_process *p)
{
	bool listed = !s->n;

	for (uint32_t i = 0; i < s->n && !listed; i++)
		listed = s->pids[i] == p->pid && s->start_times[i] == p->start_time;
	return listed;
}

static enum MHD_Result answer_history(struct request *r, uint64_t from, uint64_t to,
				      const struct history_selection *which)
{
	struct store *store = host_store(r->serve->host);
	struct store_process *list = NULL;
	struct text_out json = { 0 };
	uint32_t n = 0;
	int e = store_processes(store, from, to, &list, &n);

	if (e < 0)
		return answer_error(r, 503, "kindlingd is busy, try again: %s", strerror(-e));
	qsort(list, n, sizeof(*list), by_name_and_time);
	json_begin_object(&json, NULL);
	json_add_u64(&json, "bytes", store_disk_bytes(store));
	json_add_u64(&json, "max_bytes", host_config(r->serve->host)->store_max_bytes);
	json_add_double(&json, "retention_s",
			(double)host_config(r->serve->host)->retention_ns / 1e9);
	json_begin_list(&json, "processes");
	for (uint32_t i = 0; i < n; i++)
		if (is_listed(which, &list[i]))
			process_json(&json, r->serve->host, &list[i]);
	json_end_list(&json);
	json_end_object(&json);
	store_processes_free(list, n);
	return answer_json(r, 200, &json);
}

enum MHD_Result serve_history(struct request *r)
{
	static struct selection known;
	struct history_selection which;
	uint64_t from = 0, to = UINT64_MAX;
	bool all = !argument(r, "last") && !argument(r, "from") && !argument(r, "to");
	enum MHD_Result result;

	if (!host_store(r->serve->host))
		return answer_error(r, 404, "this kindlingd keeps no history");
	if (!is_apart(r))
		return answer_apart(r, APART_HISTORY);
	if (!all && !api_time_range(r, &from, &to))
		return answer_error(
			r, 400,
			"last must be a duration such as 60s; from and to are ns since 1970");
	if (history_select(r, from, to, &known, &which) < 0)
		result = MHD_YES;
	else
		result = answer_history(r, from, to, &which);
	history_selection_free(&which);
	return result;
}
