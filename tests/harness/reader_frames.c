/* Decodes frames: the dictionary, threads, the ledger; events are in reader_events.c. See
 * reader.h. */
#include "tests/harness/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct reader_in in;

double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void wrong(const char *fmt, ...)
{
	va_list ap;

	in.failed = true;
	printf("WRONG ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* user and system time, in s */
double process_cpu_s(void)
{
	unsigned long user = 0, system = 0;
	char path[64], buf[1024] = "";
	const char *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", opt.pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(buf, sizeof(buf), f) && (p = strrchr(buf, ')')))
		sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		       &system);
	fclose(f);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static bool is_id(uint32_t id)
{
	return id && id < IDS_MAX;
}

const char *text(uint32_t id)
{
	return is_id(id) && in.strings[id] ? in.strings[id] : "?";
}

void print_frame(const struct wire_node *n)
{
	const struct wire_method *m = &in.methods[n->ref];

	if (wire_kind_is_method(n->kind))
		printf("%s.%s:%d", text(m->class_id), text(m->name_id), n->line);
	else if (n->kind == WIRE_KIND_NATIVE)
		printf("%s+0x%llx", text(in.mappings[n->ref].path_id),
		       (unsigned long long)n->offset);
	else
		printf("%s", text(n->ref));
	if (opt.kinds && wire_kind_is_method(n->kind))
		printf("@%s", wire_kind_names[n->kind]);
}

struct thread *thread(uint32_t tid)
{
	uint32_t i = (tid * 2654435761u) % THREADS_MAX;

	while (in.threads[i].tid && in.threads[i].tid != tid)
		i = (i + 1) % THREADS_MAX;
	in.threads[i].tid = tid;
	return &in.threads[i];
}

static void forget(void)
{
	for (uint32_t i = 0; i < IDS_MAX; i++)
		free(in.strings[i]);
	memset(in.strings, 0, sizeof(in.strings));
	memset(in.methods, 0, sizeof(in.methods));
	memset(in.mappings, 0, sizeof(in.mappings));
	memset(in.nodes, 0, sizeof(in.nodes));
	memset(in.self_ns, 0, sizeof(in.self_ns));
	memset(in.contexts, 0, sizeof(in.contexts));
}

static void on_string(const struct wire_string *s)
{
	if (!is_id(s->id) || in.strings[s->id]) {
		wrong("string %u twice", s->id);
		return;
	}
	in.strings[s->id] = strndup(s->str.p, s->str.len);
}

static void on_method(const struct wire_method *m)
{
	if (!is_id(m->id) || in.methods[m->id].id || !in.strings[m->class_id] ||
	    !in.strings[m->name_id] || !in.strings[m->sig_id]) {
		wrong("method %u twice or from nothing", m->id);
		return;
	}
	in.methods[m->id] = *m;
}

static void on_mapping(const struct wire_mapping *m)
{
	if (!is_id(m->id) || in.mappings[m->id].id || !in.strings[m->path_id]) {
		wrong("mapping %u twice or from nothing", m->id);
		return;
	}
	in.mappings[m->id] = *m;
}

static void on_node(const struct wire_node *n)
{
	bool known;

	if (!is_id(n->id) || !is_id(n->ref) || n->parent >= IDS_MAX) {
		wrong("node %u out of range", n->id);
		return;
	}
	if (wire_kind_is_method(n->kind))
		known = in.methods[n->ref].id != 0;
	else if (n->kind == WIRE_KIND_NATIVE)
		known = in.mappings[n->ref].id != 0;
	else
		known = in.strings[n->ref] != NULL;
	if (in.nodes[n->id].id || !known || (n->parent && !in.nodes[n->parent].id)) {
		wrong("node %u twice or from nothing", n->id);
		return;
	}
	in.nodes[n->id] = *n;
}

static void on_context(const struct wire_context *c)
{
	snprintf(in.contexts[c->id], sizeof(in.contexts[0]), "%.*s/%.*s", (int)c->trace_id.len,
		 c->trace_id.p, (int)c->span_id.len, c->span_id.p);
}

static void on_thread(const struct wire_thread *t)
{
	struct thread *known = thread(t->tid);

	if (opt.verbose || opt.lines)
		printf("THREAD %u flags %u java %llu %.*s\n", t->tid, t->flags,
		       (unsigned long long)t->java_id, (int)t->name.len, t->name.p);
	known->ended = t->flags & WIRE_THREAD_ENDED;
	in.ended += known->ended;
	if (known->ended)
		return;
	free(known->name);
	known->name = strndup(t->name.p, t->name.len);
}

/* Starts the host engine with the signal and the interval that the agent reports. */
static void follow(const uint64_t *c)
{
	struct host_engine_target target = {
		.handler = c[WIRE_COUNTER_HOST_HANDLER],
		.interval_ns = c[WIRE_COUNTER_INTERVAL_NS],
		.signo = (int)c[WIRE_COUNTER_HOST_SIGNAL],
	};
	int r;

	if (!target.signo) {
		host_engine_remove(host, opt.pid);
		return;
	}
	r = host_engine_set(host, opt.pid, &target);
	if (r < 0)
		wrong("the host engine: %s", strerror(-r));
}

static void check_accounts(const struct wire_ledger *l, enum wire_event event)
{
	const struct wire_accounts *b = &l->accounts[event];
	uint64_t dropped = 0, dropped_weight = 0;

	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		dropped += b->drop[i].n;
		dropped_weight += b->drop[i].weight;
	}
	if (b->taken != b->written + dropped ||
	    b->taken_weight != b->written_weight + dropped_weight)
		wrong("%s: taken is not written + dropped: %llu, %llu, %llu",
		      wire_event_names[event], (unsigned long long)b->taken,
		      (unsigned long long)b->written, (unsigned long long)dropped);
	if (b->written != in.events[event].n || b->written_weight != in.events[event].weight)
		wrong("%s: written %llu, decoded %llu", wire_event_names[event],
		      (unsigned long long)b->written, (unsigned long long)in.events[event].n);
}

static void on_ledger(const struct wire_ledger *l)
{
	const struct wire_accounts *b = &l->accounts[WIRE_EVENT_CPU];
	const uint64_t *c = l->counter;

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		check_accounts(l, e);
	if (opt.details && in.samples && !in.ledger.accounts[WIRE_EVENT_CPU].taken)
		print_parts("first", l);
	in.ledger = *l;
	in.ledgers++;
	if (host)
		follow(c);
	if (opt.verbose)
		printf("LEDGER taken %llu written %llu interval %llu us events %llu agent_bytes %llu\n",
		       (unsigned long long)b->taken, (unsigned long long)b->written,
		       (unsigned long long)c[WIRE_COUNTER_INTERVAL_NS] / 1000,
		       (unsigned long long)c[WIRE_COUNTER_EVENTS],
		       (unsigned long long)c[WIRE_COUNTER_AGENT_BYTES]);
	if (opt.verbose && opt.details)
		print_parts("now", l);
}

static void on_hello(const struct wire_frame *f)
{
	struct wire_hello h;

	if (wire_get_hello(f, &h) < 0) {
		wrong("HELLO");
		return;
	}
	in.hello = true;
	in.sequence = f->sequence;
	if (opt.library && (h.secret.len != sizeof(in.secret) ||
			    memcmp(h.secret.p, in.secret, sizeof(in.secret)) != 0))
		wrong("HELLO does not say the secret of START");
	printf("HELLO agent %.*s hash %.*s, %.*s %.*s %.*s, %.*s, %.*s, %.*s, ns_pid %llu, interval "
	       "%llu us, tick %llu us\n",
	       (int)h.agent_version.len, h.agent_version.p, (int)h.agent_hash.len, h.agent_hash.p,
	       (int)h.jvm_vendor.len, h.jvm_vendor.p, (int)h.jvm_name.len, h.jvm_name.p,
	       (int)h.jvm_version.len, h.jvm_version.p, (int)h.libc.len, h.libc.p,
	       (int)h.engine.len, h.engine.p, (int)h.walker.len, h.walker.p,
	       (unsigned long long)h.ns_pid, (unsigned long long)h.interval_ns / 1000,
	       (unsigned long long)h.tick_ns / 1000);
}

#define EACH(record_type, next, on)                                  \
	do {                                                         \
		struct record_type record_;                          \
		struct wire_reader r_;                               \
		int more_;                                           \
		wire_read(&r_, f);                                   \
		while ((more_ = next(&r_, &record_)) > 0)            \
			on(&record_);                                \
		if (more_ < 0)                                       \
			wrong("a record of frame type %d", f->type); \
	} while (0)

void on_frame(const struct wire_frame *f)
{
	struct wire_ledger ledger;
	struct wire_fault words;

	if (f->type != WIRE_HELLO && !in.hello)
		return; /* a frame of the session before ours */
	if (f->type != WIRE_HELLO && f->sequence != ++in.sequence)
		wrong("frame %llu came instead of %llu", (unsigned long long)f->sequence,
		      (unsigned long long)in.sequence);
	switch (f->type) {
	case WIRE_HELLO:
		on_hello(f);
		break;
	case WIRE_RESET:
		in.resets++;
		forget();
		break;
	case WIRE_CONTEXT:
		EACH(wire_context, wire_next_context, on_context);
		break;
	case WIRE_STRING:
		EACH(wire_string, wire_next_string, on_string);
		break;
	case WIRE_METHOD:
		EACH(wire_method, wire_next_method, on_method);
		break;
	case WIRE_MAPPING:
		EACH(wire_mapping, wire_next_mapping, on_mapping);
		break;
	case WIRE_NODE:
		EACH(wire_node, wire_next_node, on_node);
		break;
	case WIRE_THREAD:
		EACH(wire_thread, wire_next_thread, on_thread);
		break;
	case WIRE_CPU:
		EACH(wire_sample, wire_next_sample, on_sample);
		break;
	case WIRE_LOCK:
		EACH(wire_lock, wire_next_lock, on_lock);
		break;
	case WIRE_ALLOC:
		EACH(wire_alloc, wire_next_alloc, on_alloc);
		break;
	case WIRE_STATE:
		EACH(wire_state, wire_next_state, on_state);
		break;
	case WIRE_VIRTUAL:
		EACH(wire_virtual, wire_next_virtual, on_virtual);
		break;
	case WIRE_PAUSE:
		EACH(wire_pause, wire_next_pause, on_pause);
		break;
	case WIRE_WALL:
		EACH(wire_sample, wire_next_sample, on_wall);
		break;
	case WIRE_OFFCPU:
		EACH(wire_offcpu, wire_next_offcpu, on_offcpu);
		break;
	case WIRE_LEDGER:
		if (wire_get_ledger(f, &ledger) < 0)
			wrong("LEDGER");
		else
			on_ledger(&ledger);
		break;
	case WIRE_FAULT:
	case WIRE_BYE:
	case WIRE_NOTE:
		if (wire_get_fault(f, &words) < 0)
			wrong("FAULT, BYE or NOTE");
		else
			printf("%s %u %.*s: %.*s\n",
			       f->type == WIRE_BYE    ? "BYE"
			       : f->type == WIRE_NOTE ? "NOTE"
						      : "FAULT",
			       words.code, (int)words.step.len, words.step.p, (int)words.what.len,
			       words.what.p);
		in.bye |= f->type == WIRE_BYE;
		break;
	default:
		wrong("frame type %d", f->type);
	}
}
