/*
 * A history without a daemon: windows SEGMENTS FROM_S WINDOWS PROCESSES STACKS writes WINDOWS
 * windows of ten seconds, the first of which begins at FROM_S, of PROCESSES made-up JVMs with
 * STACKS stacks each of CPU time and a few waits. The same arguments give the same samples. Prints
 * how many there are, of which event, in a line of JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/store/store.h"

#define WINDOW_NS (10 * NS_PER_S)
#define DEPTH	  12

static uint64_t made[WIRE_EVENT_COUNT];

/* Names that hardly compress, so that the size of a body is proportional to the number of
 * stacks. */
static uint32_t windows_frame(struct profile *p, uint32_t number)
{
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = (int32_t)(number % 400) };
	uint64_t noise = (number + 1) * 0x9e3779b97f4a7c15ull;
	char text[96];

	snprintf(text, sizeof(text), "com.example.C%016" PRIx64, noise);
	f.class_name = profile_string(p, text);
	snprintf(text, sizeof(text), "m%016" PRIx64, noise * noise);
	f.method = profile_string(p, text);
	f.signature = profile_string(p, "()V");
	return profile_intern_frame(p, &f);
}

static void windows_add(struct profile *p, const struct profile_thread *t, uint32_t node,
			enum wire_event event, uint32_t samples)
{
	const struct profile_row row = { .thread = profile_thread(p, t),
					 .node = node,
					 .event = (uint8_t)event,
					 .samples = samples,
					 .weight = samples * 10 * NS_PER_MS };

	profile_add_row(p, &row);
	made[event] += samples;
}

static void windows_process(struct profile *p, uint32_t number, uint32_t stacks)
{
	struct profile_process q = { .pid = 1000 + number, .start_time = 77, .tenant = 1 + number };
	struct profile_thread t = { .tid = 5 };
	struct labels labels = { 0 };
	char text[64];

	profile_payer(p, q.tenant);
	snprintf(text, sizeof(text), "service-%u", number);
	(void)labels_set(&labels, "service", text);
	q.name = profile_string(p, text);
	q.labels = profile_string(p, labels.text);
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "main");
	for (uint32_t i = 0; i < stacks; i++) {
		uint32_t node = 0;

		for (uint32_t d = 0; d < DEPTH; d++)
			node = profile_node(p, node, windows_frame(p, d < 6 ? d : i * DEPTH + d));
		windows_add(p, &t, node, WIRE_EVENT_CPU, 1 + i % 3);
		if (i % 10 == 0)
			windows_add(p, &t, node, WIRE_EVENT_LOCK, 1);
	}
	profile_add_cpu(p, t.process, WINDOW_NS);
}

int main(int argc, char **argv)
{
	CLEANUP(store_freep) struct store *store = NULL;
	uint64_t from;

	if (argc != 6 || store_new(argv[1], UINT64_MAX / 2, UINT64_MAX / 2, &store) < 0) {
		fputs("Usage: windows SEGMENTS FROM_S WINDOWS PROCESSES STACKS\n", stderr);
		return 2;
	}
	from = strtoull(argv[2], NULL, 10) * NS_PER_S;
	for (int w = 0; w < atoi(argv[3]); w++) {
		CLEANUP(profile_freep) struct profile *p = NULL;

		if (profile_new(&p) < 0)
			return 1;
		p->begin_real_ns = from + (uint64_t)w * WINDOW_NS;
		p->end_real_ns = p->begin_real_ns + WINDOW_NS;
		p->interval[WIRE_EVENT_CPU] = 10 * NS_PER_MS;
		for (int i = 0; i < atoi(argv[4]); i++)
			windows_process(p, (uint32_t)i, (uint32_t)atoi(argv[5]));
		if (store_append(store, p) < 0)
			return 1;
	}
	printf("{\"cpu\":%" PRIu64 ",\"lock\":%" PRIu64 "}\n", made[WIRE_EVENT_CPU],
	       made[WIRE_EVENT_LOCK]);
	return 0;
}
