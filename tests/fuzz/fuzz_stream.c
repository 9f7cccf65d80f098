/* A stream fed with arbitrary bytes after a valid HELLO: no crash, bounded memory, accounts that
 * balance. */
#include <stdlib.h>
#include "daemon/stream/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct stream_ops ops = { 0 };
	struct wire_hello hello = { .protocol = WIRE_PROTOCOL };
	uint8_t buf[WIRE_FRAME_MAX];
	struct stream_counts c;
	struct wire_writer w;
	struct fault f = { 0 };
	struct stream *s;
	uint64_t sum, sum_weight;

	if (stream_new(&ops, NULL, &s) < 0)
		return 0;
	wire_begin(&w, buf, WIRE_HELLO);
	wire_put_hello(&w, &hello);
	if (stream_feed(s, buf, wire_end(&w, 1), &f) < 0)
		abort();
	/* in two pieces, to cover frames that arrive in parts */
	if (stream_feed(s, data, size / 3, &f) == 0)
		(void)stream_feed(s, data + size / 3, size - size / 3, &f);
	stream_counts(s, &c);
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct stream_accounts *b = &c.of[e];

		sum = b->delivered + b->lost;
		sum_weight = b->delivered_weight + b->lost_weight;
		for (int i = 0; i < WIRE_DROP_COUNT; i++) {
			sum += b->dropped[i].n;
			sum_weight += b->dropped[i].weight;
		}
		if (b->taken != sum || b->taken_weight != sum_weight)
			abort();
	}
	stream_free(s);
	return 0;
}
