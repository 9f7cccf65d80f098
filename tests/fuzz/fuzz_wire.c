/* Every decoder of wire.h on arbitrary bytes: it must end, stay inside the buffer, and return
 * -EBADMSG for malformed input. */
#include "proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_records(const struct wire_frame *f)
{
	struct wire_reader r;
	struct wire_string string;
	struct wire_method method;
	struct wire_mapping mapping;
	struct wire_node node;
	struct wire_thread thread;
	struct wire_context context;
	struct wire_sample sample;
	struct wire_lock lock;
	struct wire_alloc alloc;
	struct wire_offcpu offcpu;
	struct wire_state state;
	struct wire_virtual virtual;
	struct wire_pause pause;
	struct wire_hello hello;
	struct wire_ledger ledger;
	struct wire_fault fault;
	struct wire_start start;

	wire_read(&r, f);
	while (wire_next_string(&r, &string) > 0)
		;
	wire_read(&r, f);
	while (wire_next_method(&r, &method) > 0)
		;
	wire_read(&r, f);
	while (wire_next_mapping(&r, &mapping) > 0)
		;
	wire_read(&r, f);
	while (wire_next_node(&r, &node) > 0)
		;
	wire_read(&r, f);
	while (wire_next_thread(&r, &thread) > 0)
		;
	wire_read(&r, f);
	while (wire_next_context(&r, &context) > 0)
		;
	wire_read(&r, f);
	while (wire_next_sample(&r, &sample) > 0)
		;
	wire_read(&r, f);
	while (wire_next_lock(&r, &lock) > 0)
		;
	wire_read(&r, f);
	while (wire_next_alloc(&r, &alloc) > 0)
		;
	wire_read(&r, f);
	while (wire_next_offcpu(&r, &offcpu) > 0)
		;
	wire_read(&r, f);
	while (wire_next_state(&r, &state) > 0)
		;
	wire_read(&r, f);
	while (wire_next_virtual(&r, &virtual) > 0)
		;
	wire_read(&r, f);
	while (wire_next_pause(&r, &pause) > 0)
		;
	(void)wire_get_hello(f, &hello);
	(void)wire_get_ledger(f, &ledger);
	(void)wire_get_fault(f, &fault);
	(void)wire_get_start(f, &start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_frame frame;
	int n;

	while ((n = wire_peek(data, size, &frame)) > 0) {
		read_records(&frame);
		data += n;
		size -= (size_t)n;
	}
	return 0;
}
