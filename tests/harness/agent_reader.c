/*
 * A daemon's end of a session for developers: loads the agent into a JVM (or comes back to one that
 * lives there), prints what arrives, and checks the books against what was decoded.
 *
 *   agent_reader [options] PID
 *     -l LIB   load LIB with jattach; without it: reach the FIFOs of an agent through /proc/PID/fd
 *     -d SEC   how long (5)             -i USEC  interval (10000)
 *     -r BYTES ring                     -p BYTES pipe
 *     -w MSEC  sleep before each read: a slow reader
 *     -m PERMILLE  CPU budget; without it the budget is off
 *     -e LIST  what to collect: cpu,lock,alloc,wall (cpu)
 *     -T NSEC  shorter waits are only counted (1000000)
 *     -M auto|always|never   monitor enters and waits (auto)
 *     -A BYTES between two allocation samples   -W USEC between two wall-clock samples
 *     -N NAME  part of the names of the threads for wall-clock samples; without it all
 *     -S       what threads do, as well
 *     -L       print each wait, allocation and thread, a line each
 *     -H       signals from the host engine, for an interval below the kernel's tick, if it is to
 * be had -s       STOP for the middle third of the time -c N     STOP and START so many times, as
 * fast as the agent follows -k       leave without DETACH, as if killed -v       print every frame
 *     -D       details: memory by part at the first sample and at the end, times in the handler
 *
 * Exit status: 0 all books exact, 1 not, 2 no session.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/bpf/host_engine.h"
#include "proto/wire.h"

#define IDS_MAX	    (1u << 18)
#define THREADS_MAX (1u << 16)
#define DIR_NAME    "kindling-reader-"
#define NS_PER_S    1000000000ull

static struct {
	int pid;
	const char *library;
	double seconds;
	uint64_t interval_ns, ring_bytes, permille;
	int pipe_bytes, sleep_ms, cycles;
	bool threads, no_budget, stop, leave, verbose, details, host, lines;
	uint64_t events, lock_min_ns, monitors, alloc_interval, wall_interval_ns;
	const char *wall_threads;
} opt = { .seconds = 5, .interval_ns = 10000000, .no_budget = true };

struct thread {
	uint32_t tid;
	char *name;
	uint64_t weight_ns;
	bool ended;
};

static struct {
	char *strings[IDS_MAX];
	struct wire_method methods[IDS_MAX];
	struct wire_mapping mappings[IDS_MAX];
	struct wire_node nodes[IDS_MAX];
	uint64_t self_ns[IDS_MAX];
	struct thread threads[THREADS_MAX];
	uint64_t samples, weight_ns, bytes, sequence, booked_ns, broken;
	struct {
		uint64_t n, weight;
	} events[WIRE_EVENT_COUNT];
	uint64_t opened, closed;
	struct wire_ledger ledger;
	uint64_t ledgers, resets, ended;
	bool hello, bye, failed;
	double first_sample_s;
} in;

static struct host_engine *host; /* with -H */

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
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
static double process_cpu_s(void)
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

/* ---- frames in --------------------------------------------------------------------------- */

static bool is_id(uint32_t id)
{
	return id && id < IDS_MAX;
}

static const char *text(uint32_t id)
{
	return is_id(id) && in.strings[id] ? in.strings[id] : "?";
}

static void print_frame(const struct wire_node *n)
{
	const struct wire_method *m = &in.methods[n->ref];

	if (wire_kind_is_method(n->kind))
		printf("%s.%s:%d", text(m->class_id), text(m->name_id), n->line);
	else if (n->kind == WIRE_KIND_NATIVE)
		printf("%s+0x%llx", text(in.mappings[n->ref].path_id),
		       (unsigned long long)n->offset);
	else
		printf("%s", text(n->ref));
}

static struct thread *thread(uint32_t tid)
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

static void count(enum wire_event event, uint64_t weight)
{
	in.events[event].n++;
	in.events[event].weight += weight;
	if (in.first_sample_s == 0)
		in.first_sample_s = now_s();
}

static bool is_stack(uint32_t node)
{
	if (node < IDS_MAX && (!node || in.nodes[node].id))
		return true;
	wrong("a sample's node %u is not defined", node);
	return false;
}

/* ---- waits and allocations, a line each ---- */

static void print_stack(uint32_t node)
{
	if (!node)
		printf("-");
	for (uint32_t n = node; n; n = in.nodes[n].parent) {
		print_frame(&in.nodes[n]);
		printf(in.nodes[n].parent ? " < " : "");
	}
}

static void print_lock(const struct wire_lock *l)
{
	printf("LOCK %llu %llu tid %u %s flags %u %s@%u owner %u waker %u stack ",
	       (unsigned long long)l->begin_ns, (unsigned long long)l->duration_ns, l->tid,
	       wire_wait_names[l->wait], l->flags, l->class_id ? text(l->class_id) : "-",
	       l->identity, l->owner_tid, l->waker_tid);
	print_stack(l->node);
	printf(" owner_stack ");
	print_stack(l->owner_node);
	printf("\n");
}

static void on_lock(const struct wire_lock *l)
{
	if (!is_stack(l->node) || !is_stack(l->owner_node))
		return;
	if (l->class_id && !in.strings[l->class_id])
		wrong("a lock's class %u is not defined", l->class_id);
	if (l->flags & WIRE_LOCK_OPEN)
		in.opened++;
	else if (l->flags & WIRE_LOCK_CLOSED)
		in.closed++;
	else
		count(WIRE_EVENT_LOCK, l->duration_ns);
	if (opt.lines)
		print_lock(l);
}

static void on_state(const struct wire_state *s)
{
	if (opt.verbose)
		printf("STATE %llu tid %u %s cpu %llu ns\n", (unsigned long long)s->mono_ns, s->tid,
		       wire_state_names[s->state], (unsigned long long)s->cpu_ns);
}

static void on_virtual(const struct wire_virtual *v)
{
	if ((v->container_id && !in.strings[v->container_id]) ||
	    (v->class_id && !in.strings[v->class_id]))
		wrong("virtual threads of strings %u, %u", v->container_id, v->class_id);
	else if (opt.verbose)
		printf("VIRTUAL %llu in [%s] %s on [%s]: %u, mounted %u\n",
		       (unsigned long long)v->mono_ns, v->container_id ? text(v->container_id) : "",
		       wire_state_names[v->state], v->class_id ? text(v->class_id) : "", v->count,
		       v->mounted);
}

static void on_alloc(const struct wire_alloc *a)
{
	if (!is_stack(a->node))
		return;
	if (a->class_id && !in.strings[a->class_id])
		wrong("a class %u is not defined", a->class_id);
	count(WIRE_EVENT_ALLOC, a->weight);
	if (!opt.lines)
		return;
	printf("ALLOC %llu tid %u %s size %llu weight %llu stack ", (unsigned long long)a->mono_ns,
	       a->tid, text(a->class_id), (unsigned long long)a->size,
	       (unsigned long long)a->weight);
	print_stack(a->node);
	printf("\n");
}

static void on_wall(const struct wire_sample *s)
{
	if (!is_stack(s->node))
		return;
	count(WIRE_EVENT_WALL, s->weight_ns);
	if (!opt.lines)
		return;
	printf("WALL %llu tid %u %llu ns stack ", (unsigned long long)s->mono_ns, s->tid,
	       (unsigned long long)s->weight_ns);
	print_stack(s->node);
	printf("\n");
}

/* ---- samples ---- */

static void on_sample(const struct wire_sample *s)
{
	uint32_t root = s->node;

	if (!is_stack(s->node))
		return;
	count(WIRE_EVENT_CPU, s->weight_ns);
	if (!in.samples++ && in.first_sample_s == 0)
		in.first_sample_s = now_s();
	in.weight_ns += s->weight_ns;
	in.self_ns[s->node] += s->weight_ns;
	thread(s->tid)->weight_ns += s->weight_ns;
	while (root && in.nodes[root].parent)
		root = in.nodes[root].parent;
	if (root && in.nodes[root].kind == WIRE_KIND_SYNTHETIC) {
		if (strncmp(text(in.nodes[root].ref), "[broken:", 8) == 0)
			in.broken++;
		else
			in.booked_ns += s->weight_ns;
	}
	if (!opt.verbose)
		return;
	printf("CPU %llu.%06llu tid %u %llu ns ", (unsigned long long)(s->mono_ns / NS_PER_S),
	       (unsigned long long)(s->mono_ns % NS_PER_S / 1000), s->tid,
	       (unsigned long long)s->weight_ns);
	print_stack(s->node);
	printf("\n");
}

static void print_parts(const char *when, const struct wire_ledger *l)
{
	printf("memory %s:", when);
	for (int i = 0; i < WIRE_PART_COUNT; i++)
		printf(" %s=%llu", wire_part_names[i], (unsigned long long)l->part[i]);
	printf("\n");
}

/* The time that @share of the samples did not exceed, in us: inside a bucket by linear
 * interpolation. */
static double time_us(const struct wire_ledger *l, double share)
{
	double all = 0, below = 0;

	for (unsigned i = 0; i < WIRE_TIME_COUNT; i++)
		all += (double)l->time[i];
	for (unsigned i = 0; i < WIRE_TIME_COUNT; i++) {
		double floor_ns = (double)wire_time_floor(i), n = (double)l->time[i];
		double width_ns = (double)wire_time_floor(i + 1) - floor_ns;

		if (n > 0 && below + n >= share * all)
			return (floor_ns + width_ns * (share * all - below) / n) / 1000;
		below += n;
	}
	return 0;
}

/* Signals where the agent wants them, as often as it wants them. */
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

static void check_books(const struct wire_ledger *l, enum wire_event event)
{
	const struct wire_books *b = &l->books[event];
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
	const struct wire_books *b = &l->books[WIRE_EVENT_CPU];
	const uint64_t *c = l->counter;

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		check_books(l, e);
	if (opt.details && in.samples && !in.ledger.books[WIRE_EVENT_CPU].taken)
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

static void on_frame(const struct wire_frame *f)
{
	struct wire_ledger ledger;
	struct wire_fault words;

	if (f->type != WIRE_HELLO && !in.hello)
		return; /* of the session before ours */
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
	case WIRE_WALL:
		EACH(wire_sample, wire_next_sample, on_wall);
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

static void read_frames(int fd)
{
	static uint8_t buf[1 << 16];
	static size_t len;
	struct wire_frame frame;
	size_t at = 0;
	ssize_t n;
	int size;

	if (opt.sleep_ms)
		poll(NULL, 0, opt.sleep_ms);
	n = read(fd, buf + len,
		 opt.sleep_ms ? WIRE_FRAME_MAX - len % WIRE_FRAME_MAX : sizeof(buf) - len);
	if (n <= 0)
		return;
	len += (size_t)n;
	in.bytes += (size_t)n;
	while ((size = wire_peek(buf + at, len - at, &frame)) > 0) {
		on_frame(&frame);
		at += (size_t)size;
	}
	if (size < 0) {
		wrong("bytes that are no frame");
		exit(1);
	}
	len -= at;
	memmove(buf, buf + at, len);
}

/* ---- the session ------------------------------------------------------------------------- */

static void command(int fd, enum wire_type type, uint64_t session)
{
	struct wire_start start = {
		.protocol = WIRE_PROTOCOL,
		.interval_ns = opt.interval_ns,
		.flags = (opt.no_budget ? WIRE_START_NO_BUDGET : 0) |
			 (opt.details ? WIRE_START_DETAILS : 0) |
			 (opt.threads ? WIRE_START_THREADS : 0) | (opt.host ? WIRE_START_HOST : 0),
		.max_cpu_permille = opt.permille,
		.ring_bytes = opt.ring_bytes,
		.session = session,
		.events = opt.events,
		.lock_min_ns = opt.lock_min_ns,
		.monitors = opt.monitors,
		.alloc_interval = opt.alloc_interval,
		.wall_interval_ns = opt.wall_interval_ns,
		.wall_threads = { opt.wall_threads,
				  opt.wall_threads ? (uint32_t)strlen(opt.wall_threads) : 0 },
	};
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	wire_begin(&w, buf, type);
	if (type == WIRE_START)
		(void)wire_put_start(&w, &start);
	len = wire_end(&w, 1);
	if (write(fd, buf, len) != (ssize_t)len)
		perror("control");
}

static int jattach(const char *options)
{
	char pid[16], library[PATH_MAX];
	int status;
	pid_t child;

	if (!realpath(opt.library, library))
		return -1;
	snprintf(pid, sizeof(pid), "%d", opt.pid);
	child = fork();
	if (child == 0) {
		int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null_fd, STDOUT_FILENO);
		execlp("jattach", "jattach", pid, "load", library, "true", options, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
		fprintf(stderr, "jattach failed\n");
		return -1;
	}
	return 0;
}

/* Two FIFOs, a START in one of them, then the agent. */
static int load(uint64_t session, int *ret_events, int *ret_control)
{
	char dir[] = "/tmp/" DIR_NAME "XXXXXX", events[64], control[64], options[160], proc[64];
	struct stat st;
	int r;

	snprintf(proc, sizeof(proc), "/proc/%d", opt.pid);
	if (!mkdtemp(dir) || chmod(dir, 0711) < 0 || stat(proc, &st) < 0)
		return -1;
	snprintf(events, sizeof(events), "%s/events", dir);
	snprintf(control, sizeof(control), "%s/control", dir);
	if (mkfifo(events, 0600) < 0 || mkfifo(control, 0600) < 0 ||
	    chown(events, st.st_uid, st.st_gid) < 0 || chown(control, st.st_uid, st.st_gid) < 0)
		return -1;
	*ret_events = open(events, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	*ret_control = open(control, O_RDWR | O_CLOEXEC);
	if (*ret_events < 0 || *ret_control < 0)
		return -1;
	if (opt.pipe_bytes && fcntl(*ret_events, F_SETPIPE_SZ, opt.pipe_bytes) < 0)
		perror("F_SETPIPE_SZ");
	command(*ret_control, WIRE_START, session);
	snprintf(options, sizeof(options), "events=%s,control=%s", events, control);
	r = jattach(options);
	for (double end = now_s() + 5; !in.hello && now_s() < end;) /* until both are open there */
		read_frames(*ret_events);
	unlink(events);
	unlink(control);
	rmdir(dir);
	return r;
}

static int reopen_one(const char *end, int flags)
{
	char dir[64], path[PATH_MAX + 64], target[PATH_MAX];
	struct dirent *e;
	int fd = -1;
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%d/fd", opt.pid);
	d = opendir(dir);
	while (d && fd < 0 && (e = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strstr(target, DIR_NAME) && strstr(target, end))
			fd = open(path, flags | O_CLOEXEC);
	}
	if (d)
		closedir(d);
	return fd;
}

/* The way of a daemon that comes back: read the rest away, then START. */
static int come_back(uint64_t session, int *ret_events, int *ret_control)
{
	char rest[4096];

	*ret_events = reopen_one("/events", O_RDONLY | O_NONBLOCK);
	*ret_control = reopen_one("/control", O_WRONLY);
	if (*ret_events < 0 || *ret_control < 0)
		return -1;
	while (read(*ret_events, rest, sizeof(rest)) > 0)
		;
	command(*ret_control, WIRE_START, session);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return strcmp(x->name ? x->name : "?", y->name ? y->name : "?");
}

/* Threads of one name together, those above 2 % */
static void report_threads(void)
{
	uint64_t sum_ns = 0;

	qsort(in.threads, THREADS_MAX, sizeof(in.threads[0]), by_name);
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		sum_ns += in.threads[i].weight_ns;
		if (i + 1 < THREADS_MAX && by_name(&in.threads[i], &in.threads[i + 1]) == 0)
			continue;
		if (sum_ns * 50 > in.weight_ns)
			printf("  %5.1f %% %s\n", 100.0 * (double)sum_ns / (double)in.weight_ns,
			       in.threads[i].name ? in.threads[i].name : "?");
		sum_ns = 0;
	}
}

static void report_event(enum wire_event event)
{
	const struct wire_books *b = &in.ledger.books[event];
	const char *name = wire_event_names[event];

	if (!b->taken)
		return;
	printf("\n%s.taken=%llu %s.taken_weight=%llu %s.written=%llu ", name,
	       (unsigned long long)b->taken, name, (unsigned long long)b->taken_weight, name,
	       (unsigned long long)b->written);
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		if (b->drop[i].n)
			printf("%s.drop.%s=%llu ", name, wire_drop_names[i],
			       (unsigned long long)b->drop[i].n);
	if (event == WIRE_EVENT_LOCK)
		printf("lock.opened=%llu lock.closed=%llu", (unsigned long long)in.opened,
		       (unsigned long long)in.closed);
}

static void report(double cpu_s, double seconds)
{
	const struct wire_books *b = &in.ledger.books[WIRE_EVENT_CPU];
	const uint64_t *c = in.ledger.counter;

	printf("taken=%llu taken_ns=%llu written=%llu written_ns=%llu ",
	       (unsigned long long)b->taken, (unsigned long long)b->taken_weight,
	       (unsigned long long)b->written, (unsigned long long)b->written_weight);
	for (int i = 0; i < WIRE_COUNTER_COUNT; i++)
		if (c[i])
			printf("%s=%llu ", wire_counter_names[i], (unsigned long long)c[i]);
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		if (in.ledger.books[WIRE_EVENT_CPU].drop[i].n)
			printf("drop.%s=%llu ", wire_drop_names[i],
			       (unsigned long long)in.ledger.books[WIRE_EVENT_CPU].drop[i].n);
	for (int e = 1; e < WIRE_EVENT_COUNT; e++)
		report_event(e);
	if (opt.details) {
		printf("\n");
		print_parts("last", &in.ledger);
		printf("handler us: p50=%.2f p90=%.2f p99=%.2f mean=%.2f", time_us(&in.ledger, 0.5),
		       time_us(&in.ledger, 0.9), time_us(&in.ledger, 0.99),
		       (double)c[WIRE_COUNTER_HANDLER_NS] / 1e3 /
			       (double)(b->taken ? b->taken : 1));
	}
	printf("\nledgers=%llu resets=%llu ended=%llu broken=%llu booked_s=%.2f bytes_per_sample=%.1f\n",
	       (unsigned long long)in.ledgers, (unsigned long long)in.resets,
	       (unsigned long long)in.ended, (unsigned long long)in.broken,
	       (double)in.booked_ns / 1e9, in.samples ? (double)in.bytes / (double)in.samples : 0);
	printf("seconds=%.2f decoded=%llu decoded_s=%.3f taken_s=%.3f process_s=%.3f ratio=%.4f\n",
	       seconds, (unsigned long long)in.samples, (double)in.weight_ns / 1e9,
	       (double)b->taken_weight / 1e9, cpu_s,
	       cpu_s > 0 ? (double)b->taken_weight / 1e9 / cpu_s : 0);
	report_threads();
	printf("%s\n", in.failed ? "WRONG" : "exact");
}

static uint64_t events_of(const char *list)
{
	uint64_t bits = 0;

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (strstr(list, wire_event_names[e]))
			bits |= 1u << e;
	return bits;
}

static int parse(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "l:d:i:r:p:w:m:c:e:T:M:A:W:N:skvDHLS")) != -1) {
		switch (o) {
		case 'l':
			opt.library = optarg;
			break;
		case 'd':
			opt.seconds = atof(optarg);
			break;
		case 'i':
			opt.interval_ns = strtoull(optarg, NULL, 10) * 1000;
			break;
		case 'r':
			opt.ring_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'p':
			opt.pipe_bytes = atoi(optarg);
			break;
		case 'w':
			opt.sleep_ms = atoi(optarg);
			break;
		case 'm':
			opt.permille = strtoull(optarg, NULL, 10);
			opt.no_budget = false;
			break;
		case 's':
			opt.stop = true;
			break;
		case 'c':
			opt.cycles = atoi(optarg);
			break;
		case 'k':
			opt.leave = true;
			break;
		case 'D':
			opt.details = true;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 'e':
			opt.events = events_of(optarg);
			break;
		case 'T':
			opt.lock_min_ns = strtoull(optarg, NULL, 10);
			break;
		case 'M':
			opt.monitors = strcmp(optarg, "always") == 0  ? WIRE_MONITORS_ALWAYS
				       : strcmp(optarg, "never") == 0 ? WIRE_MONITORS_NEVER
								      : WIRE_MONITORS_AUTO;
			break;
		case 'A':
			opt.alloc_interval = strtoull(optarg, NULL, 10);
			break;
		case 'W':
			opt.wall_interval_ns = strtoull(optarg, NULL, 10) * 1000;
			break;
		case 'N':
			opt.wall_threads = optarg;
			break;
		case 'S':
			opt.threads = true;
			break;
		case 'L':
			opt.lines = true;
			break;
		case 'H':
			opt.host = true;
			break;
		default:
			return -1;
		}
	}
	if (optind != argc - 1)
		return -1;
	opt.pid = atoi(argv[optind]);
	return 0;
}

/* Each STOP is answered by a LEDGER, after the START before it was obeyed. */
static void cycle(int events, int control, uint64_t session)
{
	for (int i = 0; i < opt.cycles && !in.failed; i++) {
		uint64_t before = in.ledgers;
		double end = now_s() + 5;

		command(control, WIRE_STOP, session);
		while (in.ledgers == before && now_s() < end) {
			struct pollfd p = { .fd = events, .events = POLLIN };

			if (poll(&p, 1, 50) > 0)
				read_frames(events);
		}
		if (in.ledgers == before)
			wrong("STOP %d was not answered", i);
		command(control, WIRE_START, session);
	}
}

static volatile sig_atomic_t asked_to_end;

static void on_term(int signo)
{
	(void)signo;
	asked_to_end = 1;
}

int main(int argc, char **argv)
{
	uint64_t session = (uint64_t)time(NULL) << 16 | (uint64_t)getpid();
	double launch = now_s(), begin, cycled, cpu_begin = 0, cpu_end = 0;
	int events = -1, control = -1, phase = 0;
	char why[HOST_ENGINE_WHY_MAX];
	double asked = 0;

	if (parse(argc, argv) < 0) {
		fprintf(stderr,
			"usage: agent_reader [-l LIB] [-d SEC] [-i USEC] [-r BYTES] [-p BYTES] [-w "
			"MSEC] [-m PERMILLE] [-e LIST] [-T NSEC] [-M auto|always|never] [-A BYTES] "
			"[-W USEC] [-N NAME] [-s] [-c N] [-k] [-v] [-D] [-H] [-L] [-S] PID\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	setlinebuf(stdout); /* a file that somebody reads meanwhile */
	signal(SIGTERM, on_term); /* as if the time were over */
	if (opt.host && host_engine_new(false, &host, why) < 0) {
		fprintf(stderr, "no host engine: %s\n", why);
		opt.host = false;
	}
	if ((opt.library ? load : come_back)(session, &events, &control) < 0) {
		fprintf(stderr, "no session: %s\n", strerror(errno));
		return 2;
	}
	cpu_begin = process_cpu_s();
	begin = now_s();
	cycle(events, control, session);
	cycled = now_s(); /* thousands of them take as long as the machine lets them */
	while (!in.bye && now_s() < cycled + opt.seconds + 10 && !(asked && now_s() > asked + 10)) {
		struct pollfd p = { .fd = events, .events = POLLIN };
		double passed = now_s() - begin;

		if (opt.stop && phase == 0 && passed > opt.seconds / 3) {
			command(control, WIRE_STOP, session);
			phase = 1;
		} else if (opt.stop && phase == 1 && passed > opt.seconds * 2 / 3) {
			command(control, WIRE_START, session);
			phase = 2;
		}
		if (!asked && (passed > opt.seconds || asked_to_end)) {
			if (opt.leave)
				break;
			cpu_end = process_cpu_s();
			command(control, WIRE_DETACH, session);
			asked = now_s();
		}
		if (poll(&p, 1, 50) > 0)
			read_frames(events);
		fflush(stdout); /* who reads it may wait for it */
	}
	if (opt.leave)
		cpu_end = process_cpu_s();
	if (!in.hello || (!in.bye && !opt.leave))
		wrong("no %s", in.hello ? "BYE" : "HELLO");
	printf("first sample after %.1f ms\n", (in.first_sample_s - launch) * 1000);
	report(cpu_end - cpu_begin, now_s() - begin);
	host_engine_free(host);
	return in.failed;
}
