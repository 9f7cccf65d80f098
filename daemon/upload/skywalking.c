/*
 * See skywalking_priv.h. The sink's JVMs are those that its `targets` select in the last minute of
 * the history. Like SkyWalking's own agents it sends a ping every 30 s, properties with every tenth
 * ping, and a query for tasks every 20 s.
 */
#include "daemon/upload/skywalking_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/utf8.h"
#include "daemon/store/store.h"
#include "daemon/upload/sink_types.h"
#include "daemon/upload/source.h"
#include "daemon/upload/upload.h"

#define JVMS_MAX      1024
#define CALLS_MAX     8 /* that are in progress at once */
#define LOOK_NS	      (5 * NS_PER_S)
#define GONE_NS	      (60 * NS_PER_S) /* a JVM without a window for this time has ended */
#define UNKNOWN_NS    (30 * NS_PER_S) /* a JVM without labels is registered after this time */
#define PING_NS	      (30 * NS_PER_S)
#define POLL_NS	      (20 * NS_PER_S)
#define NO_TASKS_NS   (600 * NS_PER_S)
#define RETRY_MAX_NS  (30 * NS_PER_S)
#define PROPERTIES_OF 10 /* pings between two reports of properties */
#define OAP_NAME_MAX  70 /* an OAP's defaults of serviceNameMaxLength and instanceNameMaxLength */
#define ANSWER_MAX    (256u << 10)
#define CONTENT_MAX   (30u << 20) /* an OAP's default of jfrMaxSize */

#define MANAGEMENT "/skywalking.v3.ManagementService/"
#define TASKS	   "/skywalking.v10.AsyncProfilerTask/"

void skywalking_say(struct skywalking *w, const char *text)
{
	struct sink *s = w->sink;

	if (*text && strcmp(s->error, text) != 0)
		log_warn("sink.failed", "sink=%s error=%s", s->config->name, log_str(text));
	snprintf(s->error, sizeof(s->error), "%s", text);
}

/* ---- selection of JVMs ----------------------------------------------------------------------- */

/* The value of {key} in the pattern of an instance's name; may use @buf. */
static const char *skywalking_value(const struct store_process *p, const char *key,
				    const char *node, char buf[LABEL_VALUE_SIZE])
{
	if (strcmp(key, "pid") == 0)
		snprintf(buf, LABEL_VALUE_SIZE, "%u", p->ns_pid ? p->ns_pid : p->pid);
	else if (strcmp(key, "name") == 0)
		snprintf(buf, LABEL_VALUE_SIZE, "%s", p->name);
	else if (!*labels_get(p->labels, key, buf) && strcmp(key, "node") == 0)
		snprintf(buf, LABEL_VALUE_SIZE, "%s", node);
	return buf;
}

/* Fills in a pattern such as "{pid}@{pod}". */
static void skywalking_name(const char *pattern, const struct store_process *p, const char *node,
			    char *to, size_t size)
{
	size_t n = 0;

	while (*pattern && n + 1 < size) {
		const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
		char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

		if (!end || (size_t)(end - pattern) > sizeof(key)) {
			to[n++] = *pattern++;
			continue;
		}
		snprintf(key, sizeof(key), "%.*s", (int)(end - pattern - 1), pattern + 1);
		snprintf(to + n, size - n, "%s", skywalking_value(p, key, node, value));
		n += strlen(to + n);
		pattern = end + 1;
	}
	to[n] = '\0';
}

static void skywalking_identify(const struct skywalking *w, const struct store_process *p,
				struct skywalking_instance *id)
{
	const struct sink *s = w->sink;
	const char *pattern = s->config->instance, *node = s->upload->config->node;
	char value[LABEL_VALUE_SIZE];

	if (!*labels_get(p->labels, "service", value))
		snprintf(value, sizeof(value), "%s", p->name);
	snprintf(id->service, sizeof(id->service), "%s", value);
	if (!*pattern)
		pattern = *labels_get(p->labels, "pod", value)	       ? "{pid}@{pod}"
			  : *labels_get(p->labels, "container", value) ? "{pid}@{container}"
								       : "{pid}@{node}";
	skywalking_name(pattern, p, node, id->name, sizeof(id->name));
}

/* Cuts a long name in its middle. An OAP would cut its end, where names of pods differ. */
static void skywalking_shorten(char *name)
{
	size_t len = strlen(name), half = OAP_NAME_MAX / 2;

	if (len > OAP_NAME_MAX)
		memmove(name + half, name + len - half, half + 1);
	(void)utf8_mend(name);
}

static struct skywalking_jvm *skywalking_jvm_free(struct skywalking_jvm *j)
{
	struct skywalking *w = j->of;

	w->n_calls -= (j->ping != NULL) + (j->poll != NULL);
	w->n_jvms--;
	grpc_call_free(j->ping);
	grpc_call_free(j->poll);
	free(j->name);
	free(j->jdk);
	free(j);
	return NULL;
}

static void skywalking_jvm_new(struct skywalking *w, const struct store_process *p)
{
	struct skywalking_jvm *j = w->n_jvms < JVMS_MAX ? calloc(1, sizeof(*j)) : NULL;

	if (!j)
		return;
	w->n_jvms++;
	*j = (struct skywalking_jvm){ .next = w->jvms,
				      .of = w,
				      .pid = p->pid,
				      .ns_pid = p->ns_pid,
				      .start_time = p->start_time,
				      .name = strdup(p->name),
				      .jdk = strdup(p->jdk),
				      .is_there = true,
				      .last_created_ms = -1 };
	skywalking_identify(w, p, &j->id);
	skywalking_shorten(j->id.service);
	skywalking_shorten(j->id.name);
	if (!j->name || !j->jdk || !j->id.name[0]) {
		skywalking_jvm_free(j);
		return;
	}
	w->jvms = j;
}

/* Are the JVM's labels known? They come after its first samples; without them it would be
 * registered for the wrong service. */
static bool skywalking_is_known(const struct store_process *p)
{
	char value[LABEL_VALUE_SIZE];

	return *labels_get(p->labels, "service", value) ||
	       p->end_real_ns - p->begin_real_ns > UNKNOWN_NS;
}

static void skywalking_note(struct skywalking *w, const struct store_process *p, uint64_t from)
{
	if (p->end_real_ns < from ||
	    !sink_takes_jvm(w->sink, p->name, p->container, p->pod, p->labels))
		return;
	for (struct skywalking_jvm *j = w->jvms; j; j = j->next)
		if (j->pid == p->pid && j->start_time == p->start_time) {
			j->is_there = true;
			return;
		}
	if (skywalking_is_known(p))
		skywalking_jvm_new(w, p);
}

static void skywalking_look(struct skywalking *w)
{
	uint64_t settled = w->sink->upload->settled_real_ns,
		 from = settled > GONE_NS ? settled - GONE_NS : 0;
	struct store_process *list;
	uint32_t n;

	if (!settled || source_processes(w->sink->upload->source, from, settled, &list, &n) < 0)
		return;
	for (struct skywalking_jvm *j = w->jvms; j; j = j->next)
		j->is_there = false;
	for (uint32_t i = 0; i < n; i++)
		skywalking_note(w, &list[i], from);
	store_processes_free(list, n);
	for (struct skywalking_jvm **at = &w->jvms; *at;) {
		struct skywalking_jvm *j = *at;

		if (j->is_there) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		skywalking_jvm_free(j);
	}
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The OAP did not answer: it is asked again at a random moment within a span that doubles. */
static void skywalking_failed(struct skywalking *w, const struct grpc_end *end)
{
	uint64_t span = NS_PER_S << (w->failures < 6 ? w->failures + 1 : 7);
	char text[SINK_TEXT_MAX];

	w->failures++;
	span = span < RETRY_MAX_NS ? span : RETRY_MAX_NS;
	w->try_mono_ns = clock_mono_ns() + (end->retry_after_ns ? end->retry_after_ns
								: span / 2 + sink_random(span / 2));
	snprintf(text, sizeof(text), "%s (gRPC status %d)", end->text[0] ? end->text : "no answer",
		 (int)end->status);
	skywalking_say(w, text);
}

static void skywalking_worked(struct skywalking *w)
{
	w->failures = 0;
	if (clock_mono_ns() >= w->no_tasks_mono_ns)
		skywalking_say(w, "");
}

/* Starts one unary call and frees @message. NULL = it could not be started. */
static struct grpc_call *skywalking_ask(struct skywalking *w, const char *method, uint8_t *message,
					size_t len, const struct grpc_handler *handler,
					void *userdata)
{
	struct grpc_call *c = NULL;

	if (message && grpc_call_new(w->multi, &w->server, method, handler, userdata, &c) == 0 &&
	    grpc_call_send(c, message, len) < 0)
		c = grpc_call_free(c);
	free(message);
	if (c) {
		grpc_call_end(c);
		w->n_calls++;
	}
	return c;
}

static void skywalking_on_pinged(void *userdata, const struct grpc_end *end)
{
	struct skywalking_jvm *j = userdata;

	j->ping = grpc_call_free(j->ping);
	j->of->n_calls--;
	if (end->status != GRPC_OK) {
		skywalking_failed(j->of, end);
		return;
	}
	skywalking_worked(j->of);
	/* the first ping creates the instance; its properties must follow at once */
	j->ping_mono_ns = clock_mono_ns() + (j->pings ? PING_NS : 0);
	j->pings++;
}

static uint8_t *skywalking_properties_of(const struct skywalking_jvm *j, size_t *ret_len)
{
	const struct config *config = j->of->sink->upload->config;
	char pid[16];
	const struct skywalking_property list[] = { { "language", "java" },
						    { "OS Name", "Linux" },
						    { "hostname", config->node },
						    { "Process No.", pid },
						    { "Main Class", j->name },
						    { "JDK", j->jdk },
						    { "profiler", "kindling " KINDLING_VERSION } };

	snprintf(pid, sizeof(pid), "%u", j->ns_pid ? j->ns_pid : j->pid);
	return skywalking_properties(&j->id, list, ARRAY_SIZE(list), ret_len);
}

static void skywalking_ping_jvm(struct skywalking *w, struct skywalking_jvm *j)
{
	static const struct grpc_handler handler = { .on_end = skywalking_on_pinged };
	bool properties = j->pings % PROPERTIES_OF == 1;
	size_t len = 0;
	uint8_t *m = properties ? skywalking_properties_of(j, &len) : skywalking_ping(&j->id, &len);

	j->ping = skywalking_ask(
		w, properties ? MANAGEMENT "reportInstanceProperties" : MANAGEMENT "keepAlive", m,
		len, &handler, j);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void skywalking_on_tasks(void *userdata, const void *message, size_t len)
{
	struct skywalking_jvm *j = userdata;
	struct skywalking_task tasks[SKYWALKING_TASKS_MAX];
	int n = skywalking_tasks(message, len, j->last_created_ms, tasks);

	for (int i = 0; i < n; i++) {
		if (tasks[i].created_ms > j->last_created_ms)
			j->last_created_ms = tasks[i].created_ms;
		skywalking_run_new(j, &tasks[i]);
	}
	if (n < 0)
		skywalking_say(j->of, "the OAP's answer is not a list of commands");
}

static bool skywalking_has_no_tasks(struct skywalking *w, const struct grpc_end *end)
{
	if (end->status != GRPC_UNIMPLEMENTED)
		return false;
	w->no_tasks_mono_ns = clock_mono_ns() + NO_TASKS_NS;
	skywalking_say(w, "this OAP is older than 10.2 and has no async-profiler tasks: JVMs are "
			  "registered, and there is nothing to deliver");
	return true;
}

static void skywalking_on_polled(void *userdata, const struct grpc_end *end)
{
	struct skywalking_jvm *j = userdata;
	struct skywalking *w = j->of;

	j->poll = grpc_call_free(j->poll);
	w->n_calls--;
	j->poll_mono_ns = clock_mono_ns() + POLL_NS;
	if (skywalking_has_no_tasks(w, end))
		return;
	if (end->status == GRPC_OK)
		skywalking_worked(w);
	else
		skywalking_failed(w, end);
}

static void skywalking_poll_jvm(struct skywalking *w, struct skywalking_jvm *j)
{
	static const struct grpc_handler handler = { .on_message = skywalking_on_tasks,
						     .on_end = skywalking_on_polled };
	size_t len = 0;
	uint8_t *m = skywalking_task_query(&j->id, j->last_created_ms, &len);

	j->poll = skywalking_ask(w, TASKS "getAsyncProfilerTaskCommands", m, len, &handler, j);
}

/* ---- the sink -------------------------------------------------------------------------------- */

static void skywalking_tick(struct sink *s)
{
	struct skywalking *w = s->data;
	uint64_t now = clock_mono_ns();

	if (now >= w->look_mono_ns) {
		w->look_mono_ns = now + LOOK_NS;
		skywalking_look(w);
	}
	skywalking_runs_tick(w);
	for (struct skywalking_jvm *j = w->jvms; j; j = j->next) {
		if (now < w->try_mono_ns || w->n_calls >= CALLS_MAX)
			continue;
		if (!j->ping && now >= j->ping_mono_ns)
			skywalking_ping_jvm(w, j);
		/* an OAP has no tasks for an instance that it does not know yet */
		if (!j->poll && j->pings && now >= j->poll_mono_ns && now >= w->no_tasks_mono_ns)
			skywalking_poll_jvm(w, j);
	}
}

static void skywalking_on_tested(void *userdata, const struct grpc_end *end)
{
	struct skywalking *w = userdata;
	struct sink *s = w->sink;

	w->test = grpc_call_free(w->test);
	w->n_calls--;
	(void)skywalking_has_no_tasks(w, end);
	s->upload->on_test(s->upload, s, end->status == GRPC_OK,
			   end->status == GRPC_OK	       ? "it answers queries for tasks"
			   : end->status == GRPC_UNIMPLEMENTED ? s->error
							       : end->text);
}

/* Asks for tasks of a JVM that does not exist, which registers nothing. */
static int skywalking_test(struct sink *s)
{
	static const struct grpc_handler handler = { .on_end = skywalking_on_tested };
	const struct skywalking_instance none = { "kindling-sink-test", "kindling-sink-test" };
	struct skywalking *w = s->data;
	size_t len = 0;
	uint8_t *m;

	if (w->test)
		return -EBUSY;
	m = skywalking_task_query(&none, -1, &len);
	w->test = skywalking_ask(w, TASKS "getAsyncProfilerTaskCommands", m, len, &handler, w);
	return w->test ? 0 : -ENOMEM;
}

static void skywalking_set_server(struct skywalking *w)
{
	struct sink *s = w->sink;
	unsigned n = 0;

	w->server = (struct grpc_server){ .url = s->config->url,
					  .ca = s->secrets.ca,
					  .cert = s->secrets.cert,
					  .key = s->secrets.key,
					  .proxy = s->config->proxy[0] ? s->config->proxy : NULL,
					  .deadline_ns = s->config->timeout_ns,
					  .answer_max = ANSWER_MAX };
	for (; n < s->config->n_headers && n < GRPC_HEADERS_MAX - 2; n++) {
		snprintf(w->headers[n], sizeof(w->headers[n]), "%s: %s", s->config->headers[n].name,
			 s->config->headers[n].value);
		w->server.headers[n] = w->headers[n];
	}
	if (s->secrets.bearer[0]) { /* an OAP expects the bare token */
		snprintf(w->authentication, sizeof(w->authentication), "Authentication: %s",
			 s->secrets.bearer);
		w->server.headers[n] = w->authentication;
	}
}

static void skywalking_recorded(struct sink *s, const struct upload_recorded *answer, int fd)
{
	skywalking_runs_recorded(s->data, answer, fd);
}

static int skywalking_open(struct sink *s, char *why, size_t why_size)
{
	struct skywalking *w = calloc(1, sizeof(*w));

	if (!w) {
		snprintf(why, why_size, "no memory");
		return -ENOMEM;
	}
	w->sink = s;
	w->multi = sink_multi(s);
	w->content_max = CONTENT_MAX;
	s->data = w;
	skywalking_set_server(w);
	skywalking_runs_load(w);
	return 0;
}

static void skywalking_close(struct sink *s)
{
	struct skywalking *w = s->data;

	if (!w)
		return;
	while (w->jvms) {
		struct skywalking_jvm *next = w->jvms->next;

		skywalking_jvm_free(w->jvms);
		w->jvms = next;
	}
	skywalking_runs_free(w);
	grpc_call_free(w->test);
	explicit_bzero(w->authentication, sizeof(w->authentication));
	free(w);
	s->data = NULL;
}

const struct sink_type sink_skywalking = {
	.open = skywalking_open,
	.send = skywalking_send,
	.cancel = skywalking_cancel,
	.in_flight_max = 2, /* a body and its JFR are in memory at the same time */
	.close = skywalking_close,
	.tick = skywalking_tick,
	.recorded = skywalking_recorded,
	.test = skywalking_test,
};
