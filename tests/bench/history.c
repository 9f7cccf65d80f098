/*
 * Measures what queries of the history cost: history DIRECTORY [PROCESSES [HOURS [DAYS [SAMPLES]]]].
 * The windows are made up: each process is a server with SAMPLES samples in ten seconds (1000; with
 * few, a day of 200 processes fits on a disk), 40 threads and 600 stacks of 20 to 60 frames, a few of
 * which take most of the time. PROCESSES processes live for HOURS, one of them for DAYS. A DIRECTORY that an earlier run has filled is only asked. Nothing is
 * asserted; the limits are those of decisions/0018.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "daemon/ground/clock.h"
#include "daemon/store/store.h"

#define WINDOW_NS (10 * NS_PER_S)
#define TEMPLATES 6
#define THREADS	  40
#define STACKS	  600
#define METHODS	  900
#define QUESTIONS 41
#define HOUR_NS	  (3600 * NS_PER_S)

static uint64_t seed = 88172645463325252ull;
static int samples_each = 1000; /* of a process in a window */

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % below;
}

/* A few are drawn often: about every second draw is one of the first twentieth. */
static uint32_t draw_few(uint32_t below)
{
	uint32_t a = draw(below);

	for (int i = 0; i < 4; i++) {
		uint32_t b = draw(below);

		a = b < a ? b : a;
	}
	return a;
}

static uint32_t frame(struct profile *p, uint32_t process, uint32_t method)
{
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = (int32_t)(method % 400) };
	char text[96];

	snprintf(text, sizeof(text), "com.example.shop%u.module%u.OrderService%u", process % 8,
		 method % 30, method / 4);
	f.class_name = profile_string(p, text);
	snprintf(text, sizeof(text), "handle%u", method);
	f.method = profile_string(p, text);
	f.signature = profile_string(p, "(Ljava/lang/Object;)V");
	snprintf(text, sizeof(text), "OrderService%u.java", method / 4);
	f.file = profile_string(p, text);
	return profile_intern_frame(p, &f);
}

/* Stack @number of @process is the same in every window: all stacks are paths of one tree. */
static uint32_t stack(struct profile *p, uint32_t process, uint32_t number)
{
	uint32_t depth = 20 + number * 7 % 40, node = 0;

	for (uint32_t i = 0; i < depth; i++) {
		uint32_t branch = i < 12 ? i : i < 24 ? number % 20 * 40 + i : number * 61 + i;

		node = profile_node(p, node, frame(p, process, branch % METHODS));
	}
	return node;
}

static void add_process(struct profile *p, uint32_t number)
{
	struct profile_process q = { .pid = 1000 + number, .start_time = 77, .tenant = 1 + number };
	struct profile_thread t = { 0 };
	char text[64];

	profile_payer(p, q.tenant);
	snprintf(text, sizeof(text), "service-%u", number);
	q.name = profile_string(p, text);
	t.process = profile_process(p, &q);
	for (int i = 0; i < samples_each / 4; i++) { /* neighbouring samples are often the same */
		t.tid = 1 + draw_few(THREADS);
		snprintf(text, sizeof(text), "http-nio-8080-exec-%u", t.tid);
		t.name = profile_string(p, text);
		profile_add(p, profile_thread(p, &t), stack(p, number, draw_few(STACKS)), 4,
			    40 * NS_PER_MS);
	}
	profile_add_cpu(p, t.process, 10 * NS_PER_S);
}

static struct profile *window_of(uint32_t processes)
{
	struct profile *p;

	if (profile_new(&p) < 0)
		exit(2);
	for (uint32_t i = 0; i < processes; i++)
		add_process(p, i);
	return p;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double fill(struct store *s, uint32_t processes, uint64_t from, uint64_t to)
{
	struct profile *templates[TEMPLATES];
	double before = cpu_s();

	for (int i = 0; i < TEMPLATES; i++)
		templates[i] = window_of(processes);
	before = cpu_s();
	for (uint64_t at = from; at < to; at += WINDOW_NS) {
		struct profile *p = templates[at / WINDOW_NS % TEMPLATES];

		p->begin_real_ns = at;
		p->end_real_ns = at + WINDOW_NS;
		if (store_append(s, p) < 0)
			exit(2);
		store_upkeep(s);
	}
	for (int i = 0; i < TEMPLATES; i++)
		profile_free(templates[i]);
	return cpu_s() - before;
}

/* When the windows of an earlier run end; 0 = there are none. */
static uint64_t filled_until(struct store *s)
{
	struct store_process *list;
	uint64_t end = 0;
	uint32_t n;

	if (store_processes_unnamed(s, 0, UINT64_MAX, &list, &n) < 0)
		exit(2);
	for (uint32_t i = 0; i < n; i++)
		if (list[i].end_real_ns > end)
			end = list[i].end_real_ns;
	store_processes_free(list, n);
	return end;
}

/* Returns when they end. */
static uint64_t fill_all(struct store *s, uint32_t processes, uint64_t hours, uint64_t days)
{
	uint64_t end = clock_real_ns() / HOUR_NS * HOUR_NS, begin = end - hours * HOUR_NS;
	struct store_counts c;
	double cpu;

	if (days * 24 > hours)
		(void)fill(s, 1, end - days * 24 * HOUR_NS, begin);
	cpu = fill(s, processes, begin, end);
	store_counts(s, &c);
	printf("%u processes, %llu hours: %.2f ms of CPU a process and window, %.2f bytes a sample\n",
	       processes, (unsigned long long)hours,
	       1e3 * cpu / (double)processes / (double)(hours * 360),
	       (double)c.bytes / (double)samples_each / (double)processes / (double)(hours * 360));
	return end;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* @process: UINT32_MAX = any one */
static void ask(struct store *s, const char *what, uint32_t process, uint32_t processes,
		uint64_t span_ns, uint64_t from, uint64_t to)
{
	double ms[QUESTIONS], cpu_ms[QUESTIONS];
	uint64_t samples = 0;

	for (int i = 0; i < QUESTIONS; i++) {
		const uint32_t pid = 1000 + (process == UINT32_MAX ? draw(processes) : process);
		const struct profile_filter f = { .pids = &pid, .n_pids = 1 };
		uint64_t begin = from, at = clock_mono_ns();
		uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		struct profile *p;

		if (to - from > span_ns)
			begin += (uint64_t)draw((uint32_t)((to - from - span_ns) / NS_PER_S)) *
				 NS_PER_S;
		if (profile_new(&p) < 0 || store_query(s, begin, begin + span_ns, &f, p) < 0)
			exit(2);
		samples = profile_samples(p);
		profile_free(p);
		ms[i] = (double)(clock_mono_ns() - at) / 1e6;
		cpu_ms[i] = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns) / 1e6;
	}
	qsort(ms, QUESTIONS, sizeof(*ms), by_size);
	qsort(cpu_ms, QUESTIONS, sizeof(*cpu_ms), by_size);
	printf("%-28s median %7.1f ms, worst %7.1f ms; of CPU time %7.1f and %7.1f ms; %llu samples\n",
	       what, ms[QUESTIONS / 2], ms[QUESTIONS - 1], cpu_ms[QUESTIONS / 2],
	       cpu_ms[QUESTIONS - 1], (unsigned long long)samples);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint32_t processes = argc > 2 ? (uint32_t)atoi(argv[2]) : 200;
	uint64_t hours = argc > 3 ? (uint64_t)atoi(argv[3]) : 24;
	uint64_t days = argc > 4 ? (uint64_t)atoi(argv[4]) : 7;
	struct store_process *list;
	uint64_t at, begin, end;
	struct store *s;
	uint32_t n;

	if (argc > 5)
		samples_each = atoi(argv[5]);
	if (argc < 2 || store_new(argv[1], 30 * 24 * HOUR_NS, UINT64_MAX / 2, &s) < 0)
		return 2;
	end = filled_until(s);
	if (!end)
		end = fill_all(s, processes, hours, days);
	begin = end - hours * HOUR_NS;
	ask(s, "an hour of one", UINT32_MAX, processes, HOUR_NS, begin, end);
	ask(s, "ten minutes of one", UINT32_MAX, processes, 600 * NS_PER_S, begin, end);
	ask(s, "the last hour of one", UINT32_MAX, processes, HOUR_NS, end - HOUR_NS, end);
	ask(s, "all days of one", 0, processes, days * 24 * HOUR_NS, end - days * 24 * HOUR_NS,
	    end);
	at = clock_mono_ns();
	if (store_processes(s, 0, UINT64_MAX, &list, &n) < 0)
		return 2;
	printf("%-28s %.1f ms, %u processes\n", "what there is",
	       (double)(clock_mono_ns() - at) / 1e6, n);
	store_processes_free(list, n);
	store_free(s);
	return 0;
}
