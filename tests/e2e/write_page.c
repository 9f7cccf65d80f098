/* Writes a made-up profile as a flame graph page to stdout: write_page NODES [DEPTH [JVMS]]. The
 * names contain HTML. With two JVMs the second has a quarter of the CPU time. */
#include <stdio.h>
#include <string.h>
#include "daemon/report/report.h"
#include "proto/wire.h"

#define METHODS 500

static uint32_t method(struct profile *p, unsigned i)
{
	static const uint8_t kinds[] = { WIRE_KIND_C2, WIRE_KIND_INLINED, WIRE_KIND_C1,
					 WIRE_KIND_INTERPRETED };
	struct profile_frame f = { .kind = kinds[i % ARRAY_SIZE(kinds)], .line = (int)i + 1 };
	char name[64];

	snprintf(name, sizeof(name), "org.shop.Class%u", i % 50);
	f.class_name = profile_string(p, name);
	snprintf(name, sizeof(name), "method%u", i);
	f.method =
		profile_string(p, i == 7 ? "</script><img src=x onerror=\"window.hit=1\">" : name);
	f.file = profile_string(p, "Shop.java");
	return profile_intern_frame(p, &f);
}

int main(int argc, char **argv)
{
	unsigned nodes = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	unsigned depth = argc > 2 ? (unsigned)atoi(argv[2]) : 30, random = 1;
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct profile_process q = { .pid = 4711, .ns_pid = 1, .start_time = 1 };
	uint32_t frames[METHODS], threads[2];
	size_t len;
	char *out;

	if (profile_new(&p) < 0)
		return 1;
	p->begin_real_ns = 1700000000000000000ull;
	p->end_real_ns = p->begin_real_ns + 60000000000ull;
	p->interval[WIRE_EVENT_CPU] = 10000000;
	p->accounts.of[WIRE_EVENT_CPU] =
		(struct profile_losses){ 1000, 10000000000, 990, 9900000000, 10, 100000000, 0 };
	q.name = profile_string(
		p, "<b>org.shop.Main</b></script><img src=x onerror=\"window.hit=1\">");
	for (unsigned i = 0; i < 2; i++) {
		struct profile_thread t = { .tid = 100 + i };

		q.pid += argc > 3 ? i : 0;
		t.process = profile_process(p, &q);
		t.name = profile_string(p, i ? "worker" : "main");
		threads[i] = profile_thread(p, &t);
	}
	for (unsigned i = 0; i < METHODS; i++)
		frames[i] = method(p, i);
	/* a quarter of the CPU time, in one known method */
	profile_add(p, threads[1], profile_node(p, 0, frames[7]), 100, 1000000000);
	for (unsigned n = 0; p->n_nodes < nodes || n < 300; n++) {
		uint32_t node = 0;

		for (unsigned d = 0; d < depth; d++) {
			random = random * 1103515245 + 12345;
			node = profile_node(p, node,
					    frames[10 + (d * 31 + (random >> 16) % 4) % 400]);
		}
		profile_add(p, threads[0], node, n < 300, n < 300 ? 10000000 : 0);
	}
	if (report_write(p, REPORT_HTML, NULL, &out, &len) < 0)
		return 1;
	fwrite(out, 1, len, stdout);
	free(out);
	return 0;
}
