/* Provides the functions of base/outlet.h. */
#include "agent/base/outlet.h"

#include <stddef.h>
#include "agent/output/threads.h"
#include "agent/output/writer.h"

static bool outlet_note(const char *step, const char *text)
{
	return writer_fault(WIRE_NOTE, 0, step, text) == WRITER_OK;
}

static bool outlet_uncounted(const struct ring_sample *s)
{
	return writer_uncounted(s) == WRITER_OK;
}

static const struct outlet output = {
	.note = outlet_note,
	.uncounted = outlet_uncounted,
	.wall_repeat_sample = writer_repeat_wall_sample,
	.epoch = writer_epoch,
	.thread_named = threads_named,
	.name_threads = threads_name_all,
};

void writer_register(void)
{
	outlet = &output;
}
