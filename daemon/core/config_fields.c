/* See config_fields.h. */
#include "daemon/core/config_fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/beside.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/value.h"
#include "proto/wire.h"

#define KIB		      1024ull
#define MIB		      (1024 * KIB)
#define GIB		      (1024 * MIB)
#define EVENTS_DEFAULT	      (1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK | 1u << WIRE_EVENT_OFFCPU)
#define OFFCPU_MIN_DEFAULT_NS NS_PER_MS
#define FIELD(name, type, member, min, max, sentence)                               \
	{                                                                           \
		name, type, offsetof(struct config, member),                        \
			sizeof(((struct config *)NULL)->member), min, max, sentence \
	}

const struct config_entry config_entries[] = {
	FIELD("socket", CONFIG_PATH, socket, 0, 0,
	      "the Unix socket that kindling's commands speak to; the daemon's lock lies beside it"),
	FIELD("user", CONFIG_TEXT, user, 0, 0,
	      "the account of the process that reads data from JVMs; root = a single process that "
	      "keeps all rights"),
	FIELD("state_dir", CONFIG_PATH, state_dir, 0, 0,
	      "where the history and the names of native functions are kept"),
	FIELD("agent.library", CONFIG_FILE, agent, 0, 0,
	      "the library that goes into the JVMs; auto = the one installed with kindlingd"),
	FIELD("agent.ring_size", CONFIG_SIZE, ring_bytes, 16 * KIB, 16 * MIB,
	      "memory in each JVM for samples that are not yet written"),
	FIELD("agent.pipe_size", CONFIG_SIZE, pipe_bytes, 4 * KIB, 64 * MIB,
	      "size of the pipe from each JVM to the daemon"),
	FIELD("injector", CONFIG_PROGRAM, injector, 0, 0,
	      "the program that attaches to one JVM; auto = the one installed with kindlingd"),
	FIELD("log.level", CONFIG_LOG_LEVEL, log_level, 0, 0,
	      "what is logged: error, warning, info or debug"),
	FIELD("events.cpu.interval", CONFIG_DURATION, cpu_interval_ns, NS_PER_MS / 10,
	      10 * NS_PER_S, "CPU time of a thread between two samples"),
	FIELD("events.cpu.max_cpu", CONFIG_PERCENT, max_cpu_permille, 1, 1000,
	      "share of a JVM's own CPU time that sampling may cost before the interval grows"),
	FIELD("events.cpu.host_engine", CONFIG_BOOL, host_engine, 0, 0,
	      "sample with a clock on every CPU and BPF where the kernel allows it, otherwise "
	      "with thread timers"),
	FIELD("events.cpu.kernel", CONFIG_BOOL, kernel_stacks, 0, 0,
	      "kernel stacks of system calls; only with the host engine"),
	FIELD("events.offcpu.min", CONFIG_DURATION, offcpu_min_ns, 10000, 60 * NS_PER_S,
	      "shorter times off the CPU are only added up; only with the host engine"),
	FIELD("events.offcpu.syscall_exits", CONFIG_BOOL, offcpu_syscall_exits, 0, 0,
	      "before Linux 6.18, Java stacks also for threads without restartable sequences (musl, "
	      "glibc before 2.35): each system call of the host pays for it"),
	FIELD("events.offcpu.virtual", CONFIG_BOOL, offcpu_virtual, 0, 0,
	      "also waits of virtual threads without a carrier (JDK 21 and later): each of their "
	      "parks costs two to three times as much"),
	FIELD("events.lock.min_wait", CONFIG_DURATION, lock_min_ns, 1000, 60 * NS_PER_S,
	      "shorter waits for locks are only counted"),
	FIELD("events.lock.monitors", CONFIG_MONITORS, monitors, 0, 0,
	      "waits of synchronized and Object.wait: auto = where that costs nothing, always, never"),
	FIELD("events.alloc.interval", CONFIG_SIZE, alloc_interval, KIB, GIB,
	      "bytes allocated between two samples, on average"),
	FIELD("events.wall.interval", CONFIG_DURATION, wall_interval_ns, NS_PER_MS, 10 * NS_PER_S,
	      "time between two samples of a thread, whether it runs or waits"),
	FIELD("events.wall.threads", CONFIG_TEXT, wall_threads, 0, 0,
	      "only threads whose name contains this; empty = all"),
	FIELD("trace.otel", CONFIG_BOOL, trace_otel, 0, 0,
	      "read the trace and span ids of OpenTelemetry's agent or SDK with every event"),
	FIELD("trace.skywalking", CONFIG_BOOL, trace_skywalking, 0, 0,
	      "the same of SkyWalking's agent, from version 8 on"),
	FIELD("trace.brave", CONFIG_BOOL, trace_brave, 0, 0, "the same of Brave (Zipkin)"),
	FIELD("trace.published", CONFIG_BOOL, trace_published, 0, 0,
	      "the same of what threads publish for profilers (OTEP 4947, Elastic)"),
	FIELD("trace.mdc", CONFIG_TEXT, trace_mdc, 0, 0,
	      "keys under which a logging framework's MDC has a trace id; empty = none"),
	FIELD("trace.keep", CONFIG_BOOL, trace_keep, 0, 0,
	      "keep the ids in the history: sinks, reports and files then have them"),
	FIELD("idle", CONFIG_METHODS, idle, 0, 0,
	      "classes, or methods as com.acme.Worker.next, which wait for work: their waits are "
	      "idle, as those of the frameworks that kindling knows"),
	FIELD("quiet_attach", CONFIG_BOOL, quiet_attach, 0, 0,
	      "keep the warning of JDK 21 and later about loaded agents out of the JVM's output"),
	FIELD("discovery.bpf", CONFIG_BPF, bpf, 0, 0,
	      "learn of new processes by BPF: auto = where the kernel allows it, on = or fail, off"),
	FIELD("discovery.scan_interval", CONFIG_DURATION, scan_interval_ns, NS_PER_S,
	      3600 * NS_PER_S, "how often all of /proc is searched for JVMs"),
	FIELD("names.cri", CONFIG_SOCKET, names_cri, 0, 0,
	      "the container runtime's socket, as unix:///run/containerd/containerd.sock, which is "
	      "asked for the names, labels and annotations of pods; off = nobody is asked"),
	FIELD("attach.deadline", CONFIG_DURATION, attach_deadline_ns, NS_PER_S, 600 * NS_PER_S,
	      "how long one attempt to attach to a JVM may take"),
	FIELD("attach.tmpfs_over_tmp", CONFIG_BOOL, tmpfs_over_tmp, 0, 0,
	      "cover a /tmp that the JVM cannot write to with a tmpfs during the attach"),
	FIELD("targets.mode", CONFIG_MODE, opt_in, 0, 0,
	      "which JVMs are profiled: opt-out = all that no rule denies, opt-in = those allowed"),
	FIELD("targets.attach_rate", CONFIG_COUNT, attach_rate, 0, 100,
	      "attaches that may begin within one second; 0 = no limit"),
	FIELD("targets.max", CONFIG_COUNT, targets_max, 0, 1024,
	      "JVMs profiled at once, those that use the most CPU; 0 = no limit"),
	FIELD("targets.foreign_profilers", CONFIG_FOREIGN, yields, 0, 0,
	      "JVMs with another profiler in them: share = profile them too, yield = leave them alone"),
	FIELD("targets.crash_block", CONFIG_DURATION, crash_block_ns, 0, 365 * 24 * 3600 * NS_PER_S,
	      "for how long JVMs like one that crashed soon after an attach are left alone"),
	FIELD("store.retention", CONFIG_DURATION, retention_ns, 60 * NS_PER_S,
	      10 * 365 * 24 * 3600 * NS_PER_S, "how far back the history goes"),
	FIELD("store.max_size", CONFIG_SIZE, store_max_bytes, MIB, 16 * 1024 * GIB,
	      "disk space for the history"),
	FIELD("limits.memory", CONFIG_SIZE, memory_bytes, 64 * MIB, 64 * GIB,
	      "memory of the daemon for data that JVMs send"),
	FIELD("limits.decode_cpu", CONFIG_PERCENT, decode_cpu_permille, 0, 1000,
	      "CPU time, in percent of one CPU, for decoding the data of all JVMs; 0% = no limit"),
	FIELD("symbols.max_size", CONFIG_SIZE, symbols_max_bytes, 16 * MIB, 64 * GIB,
	      "disk space for the names of native functions"),
	FIELD("labels.threads", CONFIG_BOOL, label_threads, 0, 0,
	      "upload the names of threads; false = one thread for each JVM"),
	FIELD("labels.pods", CONFIG_TEXT, label_pods, 0, 0,
	      "labels and annotations of pods that become labels: names or patterns, separated by "
	      "commas"),
	FIELD("labels.cloud", CONFIG_CLOUD, label_cloud, 0, 0,
	      "upload the region, zone and instance: auto = read from EC2 or ECS, off"),
};
const size_t config_entry_count = ARRAY_SIZE(config_entries);

const char *config_field(size_t index, const char **ret_sentence)
{
	if (index >= config_entry_count)
		return NULL;
	if (ret_sentence)
		*ret_sentence = config_entries[index].sentence;
	return config_entries[index].name;
}

static void config_fields_name_host(struct config *c)
{
	const char *node = getenv("NODE_NAME");

	(void)gethostname(c->host, sizeof(c->host) - 1);
	if (node && *node && strlen(node) < sizeof(c->node))
		strcpy(c->node, node);
	else
		memcpy(c->node, c->host, sizeof(c->host));
}

bool config_asks_for_offcpu(const struct config *c)
{
	return c->events & 1u << WIRE_EVENT_OFFCPU &&
	       (c->events != EVENTS_DEFAULT || c->offcpu_min_ns != OFFCPU_MIN_DEFAULT_NS ||
		c->offcpu_virtual || c->offcpu_syscall_exits);
}

void config_defaults(struct config *c)
{
	const char *socket = getenv("KINDLING_SOCKET");

	*c = (struct config){
		.user = "kindling",
		.socket = "/run/kindling/kindling.sock",
		.state_dir = "/var/lib/kindling",
		.agent = "/usr/lib/kindling/libkindling.so",
		.injector = "/usr/bin/kindling-inject",
		.log_level = LOG_LEVEL_INFO,
		.events = EVENTS_DEFAULT,
		.cpu_interval_ns = 10 * NS_PER_MS,
		.offcpu_min_ns = OFFCPU_MIN_DEFAULT_NS,
		.lock_min_ns = NS_PER_MS,
		.monitors = WIRE_MONITORS_AUTO,
		.alloc_interval = 512 * KIB,
		.wall_interval_ns = 50 * NS_PER_MS,
		.max_cpu_permille = 10,
		.host_engine = true,
		.kernel_stacks = true,
		.trace_otel = true,
		.trace_skywalking = true,
		.trace_brave = true,
		.trace_published = true,
		.trace_mdc = "trace_id,traceId",
		.quiet_attach = true,
		.bpf = BPF_AUTO,
		.scan_interval_ns = 30 * NS_PER_S,
		.attach_deadline_ns = 10 * NS_PER_S,
		.attach_rate = 5,
		.targets_max = 200,
		.crash_block_ns = 24 * 3600 * NS_PER_S,
		.retention_ns = 24 * 3600 * NS_PER_S,
		.store_max_bytes = GIB,
		.memory_bytes = 192 * MIB,
		.decode_cpu_permille = 100,
		.symbols_max_bytes = 256 * MIB,
		.ring_bytes = 512 * KIB,
		.pipe_bytes = MIB,
		.label_threads = true,
		.attach_all = true,
	};
	config_fields_name_host(c);
	if (socket && *socket == '/' && strlen(socket) < sizeof(c->socket))
		strcpy(c->socket, socket);
	if (!beside_find(c->agent, sizeof(c->agent), "../lib/libkindling.so") &&
	    !beside_find(c->agent, sizeof(c->agent), "../lib/kindling/libkindling.so"))
		(void)beside_find(c->agent, sizeof(c->agent),
				  "../" KINDLING_LIBDIR "/kindling/libkindling.so");
	(void)beside_find_program(c->injector, sizeof(c->injector), "kindling-inject");
}

/* The number of letters to insert, delete or change; both texts are at most 63 bytes long. */
static unsigned config_fields_distance(const char *a, const char *b)
{
	unsigned row[64], n = (unsigned)strlen(b);

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 1; j <= n; j++) {
			unsigned change = diagonal + (a[i] != b[j - 1]);
			unsigned gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = change < gap ? change : gap;
		}
	}
	return row[n];
}

static const char *config_fields_last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

const struct config_entry *config_nearest(const char *name)
{
	const struct config_entry *best = NULL;
	unsigned best_distance = 4;

	if (strlen(name) > 63)
		return NULL;
	for (size_t i = 0; i < config_entry_count; i++) {
		const struct config_entry *e = &config_entries[i];
		unsigned d = config_fields_distance(name, e->name);

		/* the right name in the wrong place counts as one letter */
		if (strcmp(config_fields_last_part(name), config_fields_last_part(e->name)) == 0 &&
		    d > 1)
			d = 1;
		if (d < best_distance) {
			best_distance = d;
			best = e;
		}
	}
	return best;
}

static int set_path(char *member, size_t size, const char *text, char *why, size_t why_size)
{
	if (strcmp(text, "auto") == 0)
		return 0;
	if (text[0] != '/')
		snprintf(why, why_size, "must be an absolute path, not \"%.100s\"", text);
	else if (strlen(text) >= size)
		snprintf(why, why_size, "path is longer than %zu bytes", size - 1);
	else {
		strcpy(member, text);
		return 0;
	}
	return -EINVAL;
}

static bool config_fields_is_path(enum config_type type)
{
	return type == CONFIG_PATH || type == CONFIG_FILE || type == CONFIG_PROGRAM;
}

/* A missing file is better reported at the start than at every attach. */
static int config_fields_check_file(enum config_type type, const char *path, char *why,
				    size_t why_size)
{
	int mode = type == CONFIG_PROGRAM ? X_OK : R_OK, error = 0;
	struct stat st;

	if (type == CONFIG_PATH)
		return 0;
	if (stat(path, &st) < 0 || (S_ISREG(st.st_mode) && access(path, mode) < 0))
		error = errno;
	else if (S_ISREG(st.st_mode))
		return 0;
	snprintf(why, why_size, "%.100s cannot be %s: %s", path,
		 type == CONFIG_PROGRAM ? "run" : "read",
		 error ? strerror(error) : "it is not a file");
	return -EINVAL;
}

int config_check_files(const struct config *c, const struct config *known, char *why,
		       size_t why_size)
{
	for (size_t i = 0; i < config_entry_count; i++) {
		const struct config_entry *e = &config_entries[i];
		int n = snprintf(why, why_size, "%s: ", e->name);

		const char *path = (const char *)c + e->offset;

		if (!config_fields_is_path(e->type) ||
		    (known && strcmp(path, (const char *)known + e->offset) == 0))
			continue;
		if (config_fields_check_file(e->type, path, why + n, why_size - (size_t)n) < 0)
			return -EINVAL;
	}
	return 0;
}

static int config_fields_set_word(int *member, const char *const *words, const int *values,
				  size_t n, const char *text, char *why, size_t why_size)
{
	size_t used;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(text, words[i]) == 0) {
			*member = values[i];
			return 0;
		}
	}
	used = (size_t)snprintf(why, why_size, "is one of");
	for (size_t i = 0; i < n && used < why_size; i++)
		used += (size_t)snprintf(why + used, why_size - used, "%s %s", i ? "," : "",
					 words[i]);
	if (used < why_size)
		snprintf(why + used, why_size - used, "; not \"%.100s\"", text);
	return -EINVAL;
}

struct number_type {
	int (*parse)(const char *text, uint64_t *ret);
	const char *(*text)(uint64_t value, char buf[32]);
	const char *how;
};

static const char *permille_text(uint64_t value, char buf[32])
{
	snprintf(buf, 32, "%u.%u%%", (unsigned)(value / 10), (unsigned)(value % 10));
	return buf;
}

static const char *count_text(uint64_t value, char buf[32])
{
	snprintf(buf, 32, "%u", (unsigned)value);
	return buf;
}

static const struct number_type number_types[] = {
	[CONFIG_COUNT] = { value_count, count_text, "a whole number" },
	[CONFIG_DURATION] = { value_duration_ns, value_duration_text,
			      "a duration with units (ns, us, ms, s, m, h, d), as in 10ms, 1.5h or 2m30s" },
	[CONFIG_SIZE] = { value_bytes, value_bytes_text,
			  "a size with a unit (B, KiB, MiB, GiB, TiB), as in 512KiB" },
	[CONFIG_PERCENT] = { value_permille, permille_text, "a percentage, as in 1% or 0.5%" },
};

static int set_number(void *member, const struct config_entry *e, const char *text, char *why,
		      size_t why_size)
{
	const struct number_type *type = &number_types[e->type];
	char min[32], max[32];
	uint64_t value = 0;
	int r;

	r = type->parse(text, &value);
	if (r == -EINVAL) {
		snprintf(why, why_size, "must be %s; not \"%.100s\"", type->how, text);
		return -EINVAL;
	}
	if (r < 0 || value < e->min || value > e->max) {
		snprintf(why, why_size, "must lie between %s and %s; %.100s does not",
			 type->text(e->min, min), type->text(e->max, max), text);
		return -EINVAL;
	}
	if (e->size == sizeof(unsigned))
		*(unsigned *)member = (unsigned)value;
	else
		*(uint64_t *)member = value;
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

#define WORDS_MAX 4

/* Values of enumerations, by type; the value of bools is 0 or 1. */
static const struct {
	const char *words[WORDS_MAX];
	int values[WORDS_MAX];
} word_types[] = {
	[CONFIG_LOG_LEVEL] = { { "error", "warning", "info", "debug" },
			       { LOG_LEVEL_ERR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO,
				 LOG_LEVEL_DEBUG } },
	[CONFIG_BPF] = { { "auto", "on", "off" }, { BPF_AUTO, BPF_ON, BPF_OFF } },
	[CONFIG_MODE] = { { "opt-out", "opt-in" }, { 0, 1 } },
	[CONFIG_FOREIGN] = { { "share", "yield" }, { 0, 1 } },
	[CONFIG_CLOUD] = { { "off", "auto" }, { 0, 1 } },
	[CONFIG_MONITORS] = { { "auto", "always", "never" },
			      { WIRE_MONITORS_AUTO, WIRE_MONITORS_ALWAYS, WIRE_MONITORS_NEVER } },
};

static bool config_fields_is_word(enum config_type type)
{
	return type < ARRAY_SIZE(word_types) && word_types[type].words[0];
}

static int config_fields_set_words(void *member, const struct config_entry *e, const char *text,
				   char *why, size_t why_size)
{
	const char *const *words = word_types[e->type].words;
	size_t n = 0;
	int value, r;

	while (n < WORDS_MAX && words[n])
		n++;
	r = config_fields_set_word(&value, words, word_types[e->type].values, n, text, why,
				   why_size);
	if (r < 0)
		return r;
	if (e->size == sizeof(bool))
		*(bool *)member = value;
	else
		*(int *)member = value;
	return 0;
}

static int config_fields_set_text(char *member, size_t size, const char *text, char *why,
				  size_t why_size)
{
	if (strlen(text) < size) {
		strcpy(member, text);
		return 0;
	}
	snprintf(why, why_size, "is longer than %zu bytes", size - 1);
	return -EINVAL;
}

static bool config_fields_is_name(const char *name, size_t len)
{
	if (!len || name[0] == '.' || name[len - 1] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (strchr(" \t\r\n\"'/\\()<>[]{}*?:;#", name[i]) ||
		    (name[i] == '.' && name[i + 1] == '.'))
			return false;
	return true;
}

static int config_fields_set_methods(char *member, size_t size, const char *text, char *why,
				     size_t why_size)
{
	const char *name = text;

	while (*text) {
		size_t len = strcspn(name, ",");

		if (!config_fields_is_name(name, len)) {
			snprintf(
				why, why_size,
				"must be a list of classes or methods, as in [com.acme.Worker.next]; "
				"not \"%.*s\"",
				len < 100 ? (int)len : 100, name);
			return -EINVAL;
		}
		if (!name[len])
			break;
		name += len + 1;
	}
	return config_fields_set_text(member, size, text, why, why_size);
}

static int set_socket(char *member, size_t size, const char *text, char *why, size_t why_size)
{
	static const char scheme[] = "unix://";
	const char *path =
		strncmp(text, scheme, strlen(scheme)) == 0 ? text + strlen(scheme) : text;

	if (strcmp(text, "off") == 0 || !*text) {
		member[0] = '\0';
		return 0;
	}
	if (path[0] == '/')
		return config_fields_set_text(member, size, path, why, why_size);
	snprintf(
		why, why_size,
		"must be off or the address of a Unix socket, as unix:///run/containerd/containerd.sock; "
		"not \"%.100s\"",
		text);
	return -EINVAL;
}

int config_set(struct config *c, const struct config_entry *e, const char *text, char *why,
	       size_t why_size)
{
	void *member = (char *)c + e->offset;
	int r;

	if (config_fields_is_word(e->type))
		return config_fields_set_words(member, e, text, why, why_size);
	if (config_fields_is_path(e->type)) {
		r = set_path(member, e->size, text, why, why_size);
		return r < 0 || strcmp(text, "auto") == 0
			       ? r
			       : config_fields_check_file(e->type, text, why, why_size);
	}
	if (e->type == CONFIG_TEXT)
		return config_fields_set_text(member, e->size, text, why, why_size);
	if (e->type == CONFIG_METHODS)
		return config_fields_set_methods(member, e->size, text, why, why_size);
	if (e->type == CONFIG_SOCKET)
		return set_socket(member, e->size, text, why, why_size);
	if (e->type != CONFIG_BOOL)
		return set_number(member, e, text, why, why_size);
	r = value_bool(text, member);
	if (r < 0)
		snprintf(why, why_size, "must be true or false, not \"%.100s\"", text);
	return r;
}

static const char *config_fields_word_text(const struct config_entry *e, const void *member)
{
	int value = e->size == sizeof(bool) ? *(const bool *)member : *(const int *)member;

	for (size_t i = 0; i < WORDS_MAX && word_types[e->type].words[i]; i++)
		if (word_types[e->type].values[i] == value)
			return word_types[e->type].words[i];
	return "?";
}

const char *config_value(const struct config *c, size_t index, char *buf, size_t size)
{
	const struct config_entry *e = &config_entries[index];
	const void *member = (const char *)c + e->offset;
	char number[32];

	if (config_fields_is_word(e->type))
		snprintf(buf, size, "%s", config_fields_word_text(e, member));
	else if (config_fields_is_path(e->type))
		snprintf(buf, size, "%s", (const char *)member);
	else if (e->type == CONFIG_SOCKET)
		snprintf(buf, size, "%s%s", *(const char *)member ? "unix://" : "off",
			 (const char *)member);
	else if (e->type == CONFIG_TEXT || e->type == CONFIG_METHODS)
		snprintf(buf, size, "\"%s\"", (const char *)member);
	else if (e->type == CONFIG_BOOL)
		snprintf(buf, size, "%s", *(const bool *)member ? "true" : "false");
	else
		snprintf(buf, size, "%s",
			 number_types[e->type].text(e->size == sizeof(unsigned)
							    ? *(const unsigned *)member
							    : *(const uint64_t *)member,
						    number));
	return buf;
}
