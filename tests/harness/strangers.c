/*
 * What an ordinary user of a container can do to whoever profiles it, all at once. Processes look
 * like JVMs: libjvm.so is in their maps, they catch SIGQUIT and speak the attach protocol. To the
 * agent's START they answer with the secret of their attach, and with frames that are mostly valid:
 *
 *   mutant    every kind of frame; in one of 50 a few bits are others
 *   resets    definitions, waits that go on, RESET, and again
 *   contexts  new trace ids for the same numbers, in samples of all events
 *   offcpu    times off the CPU of invented threads, virtual threads, stacks and states
 *   deep      stacks as deep as none is
 *   files     mapped files that are FIFOs, devices, sockets, links in a circle, /proc/self/mem
 *   odd       names that would be markup, paths, escapes or half a character in an answer, and times, sums
 *             and states as large as numbers are
 *   talks     FAULT and NOTE without end
 *   half      half a frame, and never the rest
 *   ends      valid frames, then another program in the process's place
 *
 * Others never answer on their attach socket, answer with garbage, a byte at a time, or without
 * end; execute themselves all the time with long environments under the name java; make and remove
 * what kindling makes in /tmp.
 *
 *   strangers all|MANNER...    says READY when it begins, and runs until it is killed
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/wire.h"

#define IDS	 2000u /* of names, methods, nodes, threads */
#define DEPTH	 4000u
#define CONTEXTS 4095u
#define ONE_OF	 50u /* frames is changed */

static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* ---- frames ---------------------------------------------------------------------------------- */

struct voice {
	struct wire_writer w;
	uint8_t buf[WIRE_FRAME_MAX];
	uint64_t sequence, session;
	uint8_t secret[WIRE_SECRET_BYTES];
	struct wire_ledger ledger;
	uint32_t epoch;
	int fd;
	bool changes; /* some bits of some frames */
};

static void begin(struct voice *v, enum wire_type type)
{
	v->w.buf = v->buf;
	wire_begin(&v->w, v->buf, type);
}

/* Ends the process when nobody reads any more: its parent begins another one. */
static void say(struct voice *v)
{
	size_t len = wire_end(&v->w, v->sequence++), at = 0;

	if (v->changes && len > WIRE_HDR_SIZE && any(ONE_OF) == 0)
		for (uint32_t i = 0; i < 1 + any(3); i++)
			v->buf[WIRE_HDR_SIZE + any((uint32_t)len - WIRE_HDR_SIZE)] ^=
				(uint8_t)(1u << any(8));
	while (at < len) {
		ssize_t n = write(v->fd, v->buf + at, len - at);

		if (n <= 0)
			_exit(0);
		at += (size_t)n;
	}
}

#define PUT(v, type, put)               \
	do {                            \
		if (!(put)) {           \
			say(v);         \
			begin(v, type); \
			(void)(put);    \
		}                       \
	} while (0)

static void greet(struct voice *v)
{
	const struct wire_hello h = { .protocol = WIRE_PROTOCOL,
				      .agent_version = { "0.1.0", 5 },
				      .jvm_name = { "\xff\x1b[31m<b>&\"", 10 },
				      .ns_pid = (uint64_t)getpid(),
				      .interval_ns = 10000000,
				      .mono_ns = now_ns(),
				      .real_ns = 1,
				      .session = v->session,
				      .secret = { (const char *)v->secret, sizeof(v->secret) } };
	bool changes = v->changes;

	v->changes = false;
	v->sequence = 1;
	begin(v, WIRE_HELLO);
	(void)wire_put_hello(&v->w, &h);
	say(v);
	v->changes = changes;
}

static void define_methods(struct voice *v)
{
	begin(v, WIRE_METHOD);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_METHOD,
		    wire_put_method(&v->w, &(struct wire_method){ i, i, 1 + any(IDS), 1, i }));
	say(v);
}

static void define(struct voice *v)
{
	static char text[2048];

	begin(v, WIRE_STRING);
	for (uint32_t i = 1; i <= IDS; i++) {
		int n = snprintf(text, sizeof(text), "com/tenant/%s%u_%u%0*d",
				 i % 7 ? "C" : "\xe2\x82", v->epoch, i, (int)any(40), 0);

		PUT(v, WIRE_STRING,
		    wire_put_string(&v->w, &(struct wire_string){ i, { text, (uint32_t)n } }));
	}
	say(v);
	define_methods(v);
	begin(v, WIRE_NODE);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_NODE,
		    wire_put_node(&v->w, &(struct wire_node){ .id = i,
							      .parent = i > 1 ? any(i) : 0,
							      .kind = WIRE_KIND_C2,
							      .ref = i,
							      .line = (int32_t)any(9999) }));
	say(v);
	begin(v, WIRE_THREAD);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_THREAD,
		    wire_put_thread(&v->w,
				    &(struct wire_thread){ i, any(8), i, { "a thread", 8 } }));
	say(v);
}

static void samples(struct voice *v, enum wire_type type, enum wire_event event, uint32_t n)
{
	begin(v, type);
	for (uint32_t i = 0; i < n; i++)
		PUT(v, type,
		    wire_put_sample(&v->w, &(struct wire_sample){ now_ns(), 1 + any(IDS), any(IDS),
								  1000, any(CONTEXTS) }));
	say(v);
	v->ledger.accounts[event].taken = v->ledger.accounts[event].written += n;
	v->ledger.accounts[event].taken_weight = v->ledger.accounts[event].written_weight +=
		1000ull * n;
}

static void times_off(struct voice *v, uint32_t n)
{
	struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_OFFCPU];

	begin(v, WIRE_OFFCPU);
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_offcpu o = {
			.mono_ns = now_ns(),
			.tid = 1 + any(1u << 22),
			.virtual_tid = any(2) ? WIRE_VIRTUAL_TID + any(1u << 20) : 0,
			.node = any(IDS),
			.weight_ns = 1000000,
			.status = (uint8_t)any(WIRE_OFFCPU_STATUS_COUNT),
			.context = any(CONTEXTS)
		};

		PUT(v, WIRE_OFFCPU, wire_put_offcpu(&v->w, &o));
	}
	say(v);
	a->taken = a->written += n;
	a->taken_weight = a->written_weight += 1000000ull * n;
}

static void locks(struct voice *v, uint32_t n, uint32_t flags)
{
	begin(v, WIRE_LOCK);
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_lock l = { .begin_ns = now_ns() - 2000000,
					     .duration_ns = 1000000,
					     .tid = 1 + any(IDS),
					     .wait = (uint8_t)any(WIRE_WAIT_COUNT),
					     .flags = (uint8_t)flags,
					     .class_id = 1 + any(IDS),
					     .identity = any(1u << 30),
					     .owner_tid = 1 + any(IDS),
					     .node = any(IDS),
					     .owner_node = any(IDS),
					     .waits = 1,
					     .context = any(CONTEXTS) };

		PUT(v, WIRE_LOCK, wire_put_lock(&v->w, &l));
	}
	say(v);
	if (!(flags & WIRE_LOCK_OPEN)) {
		struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_LOCK];

		a->taken = a->written += n;
		a->taken_weight = a->written_weight += 1000000ull * n;
	}
}

static void new_contexts(struct voice *v)
{
	char trace[WIRE_TRACE_MAX], span[17];

	begin(v, WIRE_CONTEXT);
	for (uint32_t i = 1; i < CONTEXTS; i++) {
		int n = snprintf(trace, sizeof(trace), "%08x%08x%08x%08x%.*s", any(~0u), v->epoch,
				 i, any(~0u), (int)any(90),
				 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
		int m = snprintf(span, sizeof(span), "%08x%08x", any(~0u), i);
		const struct wire_context c = { i, { trace, (uint32_t)n }, { span, (uint32_t)m } };

		PUT(v, WIRE_CONTEXT, wire_put_context(&v->w, &c));
	}
	say(v);
}

static void states(struct voice *v)
{
	begin(v, WIRE_STATE);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_STATE,
		    wire_put_state(&v->w, &(struct wire_state){
						  now_ns(),
						  i,
						  (uint8_t)any(WIRE_STATE_COUNT),
						  (uint8_t)any(WIRE_OFFCPU_STATUS_COUNT),
						  any(1u << 30),
						  (uint32_t)any(1u << 31),
						  { (uint32_t)any(1u << 31), 0, UINT32_MAX },
					  }));
	say(v);
	begin(v, WIRE_VIRTUAL);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_VIRTUAL,
		    wire_put_virtual(&v->w, &(struct wire_virtual){ now_ns(), i, i,
								    (uint8_t)any(WIRE_STATE_COUNT),
								    any(~0u), any(9) }));
	say(v);
	begin(v, WIRE_PAUSE);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_PAUSE,
		    wire_put_pause(&v->w,
				   &(struct wire_pause){ now_ns() - any(1u << 30), any(1u << 29),
							 any(1u << 30), any(1u << 20),
							 (uint8_t)any(3), 1 + any(IDS) }));
	say(v);
}

static void allocations(struct voice *v, uint32_t n)
{
	struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_ALLOC];

	begin(v, WIRE_ALLOC);
	for (uint32_t i = 0; i < n; i++)
		PUT(v, WIRE_ALLOC,
		    wire_put_alloc(&v->w,
				   &(struct wire_alloc){ now_ns(), 1 + any(IDS), any(IDS),
							 1 + any(IDS), 16, 512, any(CONTEXTS) }));
	say(v);
	a->taken = a->written += n;
	a->taken_weight = a->written_weight += 512ull * n;
}

static void account(struct voice *v)
{
	begin(v, WIRE_LEDGER);
	(void)wire_put_ledger(&v->w, &v->ledger);
	say(v);
}

static void reset(struct voice *v)
{
	begin(v, WIRE_RESET);
	say(v);
	v->epoch++;
}

static void complain(struct voice *v, enum wire_type type)
{
	static char text[WIRE_STRING_MAX];

	memset(text, 'x', sizeof(text));
	memcpy(text, "\x1b]0;owned\a\n<3>kindling: \xf0\x9f", 24);
	begin(v, type);
	(void)wire_put_fault(
		&v->w,
		&(struct wire_fault){ any(200), { "step\n", 5 }, { text, 1 + any(sizeof(text)) } });
	say(v);
}

/* ---- manners of agents ----------------------------------------------------------------------- */

static void mutant(struct voice *v)
{
	v->changes = true;
	for (;;) {
		define(v);
		new_contexts(v);
		for (int i = 0; i < 20; i++) {
			samples(v, WIRE_CPU, WIRE_EVENT_CPU, any(500));
			samples(v, WIRE_WALL, WIRE_EVENT_WALL, any(500));
			locks(v, any(200), any(16));
			times_off(v, any(500));
			allocations(v, any(200));
			states(v);
			account(v);
		}
		reset(v);
	}
}

static void resets(struct voice *v)
{
	for (;; reset(v)) {
		define(v);
		locks(v, 2 * IDS, WIRE_LOCK_OPEN);
		account(v);
	}
}

static void contexts(struct voice *v)
{
	for (define(v);; v->epoch++) {
		new_contexts(v);
		samples(v, WIRE_CPU, WIRE_EVENT_CPU, CONTEXTS);
		locks(v, CONTEXTS, 0);
		times_off(v, CONTEXTS);
		account(v);
	}
}

static void offcpu(struct voice *v)
{
	for (define(v);; account(v)) {
		times_off(v, 4000);
		states(v);
	}
}

static void deep(struct voice *v)
{
	define(v);
	for (;; account(v)) {
		begin(v, WIRE_NODE);
		for (uint32_t i = 0; i < DEPTH; i++)
			PUT(v, WIRE_NODE,
			    wire_put_node(&v->w, &(struct wire_node){ .id = IDS + 1 + i,
								      .parent = i ? IDS + i : 0,
								      .kind = WIRE_KIND_STUB,
								      .ref = 1 + any(IDS) }));
		say(v);
		begin(v, WIRE_CPU);
		for (uint32_t i = 0; i < DEPTH; i++)
			PUT(v, WIRE_CPU,
			    wire_put_sample(&v->w,
					    &(struct wire_sample){ now_ns(), 1 + any(50),
								   IDS + 1 + any(DEPTH), 1, 0 }));
		say(v);
		v->ledger.accounts[WIRE_EVENT_CPU].taken =
			v->ledger.accounts[WIRE_EVENT_CPU].written += DEPTH;
		v->ledger.accounts[WIRE_EVENT_CPU].taken_weight =
			v->ledger.accounts[WIRE_EVENT_CPU].written_weight += DEPTH;
	}
}

static void files(struct voice *v)
{
	static const char *const paths[] = {
		"/tmp/w/fifo",
		"/tmp/w/circle",
		"/tmp/w/socket",
		"/tmp/w/long/../long/../long",
		"/dev/null",
		"/dev/zero",
		"/dev/random",
		"/dev/tty",
		"/proc/self/mem",
		"/proc/1/root/etc",
		"/proc/self/environ",
		"/proc/kmsg",
		"/proc/self/fd/0",
		"/tmp/w/empty",
		"/tmp/w/hole",
		"/tmp/w/gone (deleted)",
		"",
		"//",
		"/tmp/w/elf",
		"[vdso]",
		"[stack]",
		"/memfd:x (deleted)",
	};
	const uint32_t n = sizeof(paths) / sizeof(paths[0]);

	for (;; reset(v)) {
		define(v);
		begin(v, WIRE_STRING);
		for (uint32_t i = 0; i < n; i++)
			PUT(v, WIRE_STRING,
			    wire_put_string(&v->w,
					    &(struct wire_string){
						    IDS + 1 + i,
						    { paths[i], (uint32_t)strlen(paths[i]) } }));
		say(v);
		begin(v, WIRE_MAPPING);
		for (uint32_t i = 0; i < IDS; i++)
			PUT(v, WIRE_MAPPING,
			    wire_put_mapping(&v->w,
					     &(struct wire_mapping){
						     .id = 1 + i,
						     .start = 0x1000ull * (i + 1),
						     .end = 0x1000ull * (i + 2),
						     .file_offset = any(~0u),
						     .path_id = IDS + 1 + i % n,
						     .build_id = { (uint8_t)i, (uint8_t)any(256) },
						     .build_id_len = (uint8_t)any(21) }));
		say(v);
		begin(v, WIRE_NODE);
		for (uint32_t i = 0; i < IDS; i++)
			PUT(v, WIRE_NODE,
			    wire_put_node(&v->w, &(struct wire_node){ .id = IDS + 1 + i,
								      .parent = 0,
								      .kind = WIRE_KIND_NATIVE,
								      .ref = 1 + any(IDS),
								      .offset = any(~0u) }));
		say(v);
		samples(v, WIRE_CPU, WIRE_EVENT_CPU, IDS);
		account(v);
		pause_ms(20);
	}
}

/* Names that mean something to whoever shows them. */
static const struct wire_str odd_names[] = {
#define ODD(text) { text, sizeof(text) - 1 }
	ODD("</script><script>alert(1)</script>"),
	ODD("<!--<script>"),
	ODD("]]>&amp;\"'`${1}"),
	ODD("\x1b[2J\x1b]0;owned\a"),
	ODD("../../../../etc/passwd"),
	ODD("com.acme.A;B 12\nC 7"),
	ODD("%s%n%99999999d"),
	ODD("a\0b"),
	ODD("\xe2\x80\xae\xe2\x82"),
	ODD("__proto__"),
	ODD(""),
#undef ODD
};
#define ODD_NAMES (sizeof(odd_names) / sizeof(odd_names[0]))

/* The last one is so long that whoever makes a sentence of it has to cut it, within a character. */
static struct wire_str odd_name(uint32_t i)
{
	static char longest[WIRE_STRING_MAX];

	if (i % (ODD_NAMES + 1) < ODD_NAMES)
		return odd_names[i % (ODD_NAMES + 1)];
	for (size_t k = 0; k + 1 < sizeof(longest); k += 2)
		memcpy(longest + k, "\xc3\xa9", 2);
	longest[0] = 'L';
	memmove(longest + 1, longest + 2, sizeof(longest) - 2);
	return (struct wire_str){ longest, sizeof(longest) - 1 };
}

static uint64_t odd_number(void)
{
	static const uint64_t numbers[] = { 0,	       1,	       1000000000000000000u,
					    1ull << 31, (1ull << 32) - 1, 1ull << 62,
					    1ull << 63, ~0ull };
	uint32_t i = any(12);

	return i < 8 ? numbers[i] : now_ns() - any(1u << 30);
}

static void define_odd(struct voice *v)
{
	begin(v, WIRE_STRING);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_STRING, wire_put_string(&v->w, &(struct wire_string){ i, odd_name(i) }));
	say(v);
	define_methods(v);
	begin(v, WIRE_NODE);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_NODE,
		    wire_put_node(&v->w, &(struct wire_node){ .id = i,
							      .parent = i > 1 ? any(i) : 0,
							      .kind = WIRE_KIND_C2,
							      .ref = i,
							      .line = (int32_t)odd_number() }));
	say(v);
	begin(v, WIRE_THREAD);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_THREAD,
		    wire_put_thread(&v->w, &(struct wire_thread){ i, any(8), odd_number(),
								  odd_name(i) }));
	say(v);
}

static void states_odd(struct voice *v)
{
	begin(v, WIRE_STATE);
	for (uint32_t i = 1; i <= IDS; i++)
		PUT(v, WIRE_STATE,
		    wire_put_state(&v->w, &(struct wire_state){
						  odd_number(),
						  i,
						  (uint8_t)any(WIRE_STATE_COUNT),
						  (uint8_t)any(WIRE_OFFCPU_STATUS_COUNT),
						  odd_number(),
						  (uint32_t)odd_number(),
						  { (uint32_t)odd_number(), (uint32_t)odd_number(),
						    (uint32_t)odd_number() },
					  }));
	say(v);
	begin(v, WIRE_PAUSE);
	for (uint32_t i = 1; i <= IDS; i++) {
		uint64_t length_ns = odd_number();

		PUT(v, WIRE_PAUSE,
		    wire_put_pause(&v->w, &(struct wire_pause){ odd_number(), length_ns / 2,
								length_ns, odd_number(),
								(uint8_t)any(3), 1 + any(IDS) }));
	}
	say(v);
}

static void locks_odd(struct voice *v, uint32_t n)
{
	struct wire_accounts *a = &v->ledger.accounts[WIRE_EVENT_LOCK];

	begin(v, WIRE_LOCK);
	for (uint32_t i = 0; i < n; i++) {
		const struct wire_lock l = { .begin_ns = odd_number(),
					     /* absurd sums of weights would end the stream */
					     .duration_ns = any(1u << 31),
					     .tid = 1 + any(IDS),
					     .wait = (uint8_t)any(WIRE_WAIT_COUNT),
					     .flags = (uint8_t)any(16),
					     .class_id = 1 + any(IDS),
					     .identity = (uint32_t)odd_number(),
					     .owner_tid = 1 + any(IDS),
					     .node = any(IDS),
					     .owner_node = any(IDS),
					     .waits = 1 + any(~0u) };

		PUT(v, WIRE_LOCK, wire_put_lock(&v->w, &l));
		if (l.flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED))
			continue;
		a->taken = ++a->written;
		a->taken_weight = a->written_weight += l.duration_ns;
	}
	say(v);
}

static void odd(struct voice *v)
{
	for (;; reset(v)) {
		define_odd(v);
		new_contexts(v);
		for (int i = 0; i < 20; i++) {
			samples(v, WIRE_CPU, WIRE_EVENT_CPU, 300);
			locks(v, 200, any(16));
			times_off(v, 300);
			locks_odd(v, 100);
			states_odd(v);
			account(v);
			pause_ms(50);
		}
	}
}

static void talks(struct voice *v)
{
	for (;;) {
		complain(v, WIRE_FAULT);
		complain(v, WIRE_NOTE);
	}
}

static void half(struct voice *v)
{
	define(v);
	begin(v, WIRE_CPU);
	(void)wire_put_sample(&v->w, &(struct wire_sample){ now_ns(), 1, 1, 1, 0 });
	(void)wire_end(&v->w, v->sequence);
	(void)!write(v->fd, v->buf, WIRE_HDR_SIZE + 1);
	pause_ms(3600 * 1000);
}

static void ends(struct voice *v)
{
	define(v);
	samples(v, WIRE_CPU, WIRE_EVENT_CPU, 1000);
	account(v);
	pause_ms(1000);
	execl("/proc/self/exe", "java", "churn", (char *)NULL);
}

/* ---- the attach ------------------------------------------------------------------------------ */

static void on_sigquit(int signo)
{
	(void)signo;
}

static int look_like_a_jvm(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/jvm-%d", (int)getpid());
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "/tmp/jvm-%d/libjvm.so", (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	(void)signal(SIGQUIT, on_sigquit);
	if (fd < 0 || ftruncate(fd, 4096) < 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	close(fd);
	return prctl(PR_SET_NAME, "java");
}

static int listen_to_attaches(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/.java_pid%d", (int)getpid());
	(void)unlink(a.sun_path);
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	(void)chmod(a.sun_path, 0600);
	return listen(s, 8) < 0 ? -1 : s;
}

/* Opens what a "load" names: "events=PATH,control=PATH" is its last word. */
static int open_pipes(const char *request, size_t len, int *ret_events, int *ret_control)
{
	const char *options = NULL;
	char events[512] = "", control[512] = "";

	for (size_t i = 0; i + 7 < len; i++)
		if (memcmp(request + i, "events=", 7) == 0)
			options = request + i;
	if (!options || sscanf(options, "events=%511[^,],control=%511s", events, control) != 2)
		return -1;
	*ret_control = open(control, O_RDWR | O_CLOEXEC);
	*ret_events = open(events, O_WRONLY | O_CLOEXEC);
	return *ret_control < 0 || *ret_events < 0 ? -1 : 0;
}

static size_t read_request(int client, char *buf, size_t size)
{
	size_t len = 0;
	int ends_left = 5;

	while (len < size - 1 && ends_left > 0) {
		ssize_t n = read(client, buf + len, size - 1 - len);

		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			ends_left -= buf[len + (size_t)i] == '\0';
		len += (size_t)n;
	}
	buf[len] = '\0';
	return len;
}

/* Waits for START, of the attach or of a later session; that of the attach has the secret. */
static void wait_for_start(struct voice *v, int control)
{
	static uint8_t buf[2 * WIRE_FRAME_MAX];
	struct wire_start start;
	struct wire_frame f;
	size_t len = 0;

	for (;;) {
		ssize_t n = read(control, buf + len, sizeof(buf) - len);
		int size;

		if (n <= 0)
			_exit(0);
		len += (size_t)n;
		while ((size = wire_peek(buf, len, &f)) > 0) {
			if (f.type == WIRE_START && wire_get_start(&f, &start) == 0) {
				if (start.secret.len == sizeof(v->secret))
					memcpy(v->secret, start.secret.p, sizeof(v->secret));
				v->session = start.session;
				return;
			}
			len -= (size_t)size;
			memmove(buf, buf + size, len);
		}
		if (size < 0)
			_exit(0);
	}
}

static void be_agent(void (*manner)(struct voice *v))
{
	static struct voice v;
	static char request[4096];
	int s = look_like_a_jvm() < 0 ? -1 : listen_to_attaches(), control = -1;

	for (;;) {
		int client = s < 0 ? -1 : accept(s, NULL, NULL);
		size_t len;

		if (client < 0 && errno == EINTR)
			continue;
		if (client < 0)
			_exit(1);
		len = read_request(client, request, sizeof(request));
		if (open_pipes(request, len, &v.fd, &control) < 0) {
			(void)!write(client, "0\n17.0.1\n", 9);
			close(client);
			continue;
		}
		wait_for_start(&v, control);
		greet(&v);
		(void)!write(client, "0\nreturn code: 0\n", 17);
		close(client);
		manner(&v);
		_exit(0);
	}
}

/* ---- others ---------------------------------------------------------------------------------- */

enum lie { SILENT, GARBAGE, DRIP, ENDLESS, LIE_COUNT };

static void lie(enum lie how, int client)
{
	char junk[4096];

	for (size_t i = 0; i < sizeof(junk); i++)
		junk[i] = (char)any(256);
	if (how == SILENT)
		pause_ms(3600 * 1000);
	if (how == GARBAGE)
		(void)!write(client, junk, sizeof(junk));
	while (how == DRIP && write(client, "0", 1) > 0)
		pause_ms(100);
	while (how == ENDLESS && write(client, junk, sizeof(junk)) > 0)
		;
	close(client);
}

static void be_liar(void)
{
	int s = look_like_a_jvm() < 0 ? -1 : listen_to_attaches();

	for (;;) {
		int client = s < 0 ? -1 : accept(s, NULL, NULL);

		if (client < 0 && errno != EINTR)
			_exit(1);
		if (client >= 0)
			lie((enum lie)any(LIE_COUNT), client);
	}
}

/* Executes itself with half a megabyte of environment; as "java", with libjvm.so, for some ms. */
static void churn(void)
{
	static char big[120 << 10];
	char *const argv[] = { "java", "churn", NULL };
	char *env[6] = { NULL };

	(void)look_like_a_jvm();
	memset(big, 'A' + (int)any(26), sizeof(big) - 1);
	memcpy(big, "OTEL_SERVICE_NAME=", 18);
	for (int i = 0; i < 4; i++)
		env[i] = big;
	env[4] = "JAVA_TOOL_OPTIONS=@/tmp/w/fifo -XX:Flags=/tmp/w/fifo -javaagent:/tmp/w/circle";
	pause_ms((long)any(300));
	if (any(4) == 0)
		_exit(0);
	execve("/proc/self/exe", argv, env);
	_exit(1);
}

static void race_in_tmp(void)
{
	char name[64];

	for (;; pause_ms(1)) {
		uint32_t pid = any(400);

		(void)mkdir("/tmp/kindling", 0777);
		(void)symlink("/etc", "/tmp/kindling/0.1.0");
		snprintf(name, sizeof(name), "/tmp/.attach_pid%u", pid);
		(void)symlink("/tmp/w/fifo", name);
		(void)unlink(name);
		(void)mkfifo(name, 0666);
		(void)unlink(name);
		(void)unlink("/tmp/kindling/0.1.0");
		(void)rmdir("/tmp/kindling");
		(void)symlink("/tmp/w/circle", "/tmp/kindling");
		(void)unlink("/tmp/kindling");
	}
}

static void make_odd_files(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX, .sun_path = "/tmp/w/socket" };
	int fd;

	(void)mkdir("/tmp/w", 0777);
	(void)mkfifo("/tmp/w/fifo", 0666);
	(void)symlink("/tmp/w/circle", "/tmp/w/circle");
	(void)mkdir("/tmp/w/long", 0777);
	(void)bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a, sizeof(a));
	close(open("/tmp/w/empty", O_CREAT | O_WRONLY, 0666));
	fd = open("/tmp/w/hole", O_CREAT | O_WRONLY, 0666);
	(void)!ftruncate(fd, 1ll << 40);
	close(fd);
	fd = open("/tmp/w/elf", O_CREAT | O_WRONLY, 0777);
	for (int i = 0; i < 4096; i++) {
		uint32_t word = i == 0 ? 0x464c457f : any(~0u);

		(void)!write(fd, &word, sizeof(word));
	}
	close(fd);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*agent)(struct voice *v);
	void (*other)(void);
	int n;
} manners[] = {
	{ "mutant", mutant, NULL, 4 },	   { "resets", resets, NULL, 2 },
	{ "contexts", contexts, NULL, 2 }, { "offcpu", offcpu, NULL, 2 },
	{ "deep", deep, NULL, 2 },	   { "files", files, NULL, 2 },
	{ "odd", odd, NULL, 1 },
	{ "talks", talks, NULL, 1 },	   { "half", half, NULL, 1 },
	{ "ends", ends, NULL, 2 },	   { "liar", NULL, be_liar, 6 },
	{ "churn", NULL, churn, 4 },	   { "race", NULL, race_in_tmp, 1 },
};
#define MANNERS	 (sizeof(manners) / sizeof(manners[0]))
#define CHILDREN 64

static pid_t begin_one(size_t of)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	seed = now_ns() ^ (uint64_t)getpid() << 32;
	if (manners[of].agent)
		be_agent(manners[of].agent);
	manners[of].other();
	_exit(0);
}

static bool is_asked_for(size_t of, char **argv)
{
	for (; *argv; argv++)
		if (strcmp(*argv, "all") == 0 || strcmp(*argv, manners[of].name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct {
		pid_t pid;
		size_t of;
	} children[CHILDREN];
	int n = 0;

	if (argc == 2 && strcmp(argv[0], "java") == 0) { /* churn() has executed it */
		seed = now_ns();
		churn();
	}
	make_odd_files();
	puts("READY\nline 0\nline 1");
	fflush(stdout);
	while (access("/tmp/go", F_OK) < 0)
		pause_ms(50);
	for (size_t i = 0; i < MANNERS; i++)
		for (int k = 0; k < manners[i].n && is_asked_for(i, argv + 1); k++)
			children[n].of = i, children[n++].pid = begin_one(i);
	/* who ended comes again under another number; not as fast as it could */
	for (;; pause_ms(20)) {
		pid_t ended = waitpid(-1, NULL, 0);

		for (int i = 0; i < n; i++)
			if (children[i].pid == ended)
				children[i].pid = begin_one(children[i].of);
	}
}
