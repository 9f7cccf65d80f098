/*
 * A library that publishes the calling thread's trace context as OTEP 4947 says, for the class
 * TraceKnown and for unit.test_trace_tls. It is built once for each way to reach a variable of
 * thread-local storage (general dynamic, descriptors, initial exec). In a span whose number is even
 * it detaches the record, in others it marks it invalid.
 */
#include <stdint.h>
#include <string.h>

struct record {
	uint8_t trace_id[16], span_id[8], valid, trace_flags;
	uint16_t attributes_size;
	uint8_t attributes[4];
};

__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;
static __thread struct record records[2];
static __thread int64_t current;

static void put(uint8_t *to, uint32_t n, int64_t value)
{
	memset(to, 0, n);
	for (uint32_t i = n; value; value >>= 8)
		to[--i] = (uint8_t)value;
}

/* A handler in this thread may see the record while it is being written, so the order of the
 * stores matters. */
#define ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

__attribute__((visibility("default"))) int64_t publishes_number(int64_t number);

/* Publishes the ids @number, of 16 and 8 bytes; 0 = none. Returns what was published before. */
int64_t publishes_number(int64_t number)
{
	struct record *r = &records[number & 1];
	int64_t before = current;

	if (number % 2 == 0)
		otel_thread_ctx_v1 = NULL;
	ORDER();
	r->valid = 0;
	ORDER();
	put(r->trace_id, sizeof(r->trace_id), number);
	put(r->span_id, sizeof(r->span_id), number);
	r->attributes_size = sizeof(r->attributes);
	memcpy(r->attributes, "\0\2GE", sizeof(r->attributes));
	ORDER();
	r->valid = number != 0;
	ORDER();
	otel_thread_ctx_v1 = r;
	current = number;
	return before;
}

/* static native long number(long) of the class TracePublished */
__attribute__((visibility("default"))) int64_t Java_TracePublished_number(void *env, void *class,
									  int64_t number);
int64_t Java_TracePublished_number(void *env, void *class, int64_t number)
{
	(void)env;
	(void)class;
	return publishes_number(number);
}
