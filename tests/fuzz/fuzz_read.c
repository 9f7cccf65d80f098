/* Report files from strangers: the first byte selects the format. A profile that can be read can
 * be written in every format, and its json file is read again with an equal result. */
#include <stdlib.h>
#include <string.h>
#include "daemon/report/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_all(const struct profile *p, const struct report_options *o)
{
	for (int f = 0; f < REPORT_FORMAT_COUNT; f++) {
		char why[128], *out;
		size_t len;

		/* a jfr file contains a sample as often as it was counted */
		if (f == REPORT_JFR ||
		    !report_takes((enum report_format)f, o->events, why, sizeof(why)))
			continue;
		if (report_write(p, (enum report_format)f, o, &out, &len) < 0)
			abort();
		free(out);
	}
}

static void read_again(const struct profile *p, const struct report_options *o)
{
	struct report_reading r = { .event = -1 };
	size_t len, again;
	struct profile *q;
	char *out, *twice;

	if (report_write(p, REPORT_JSON, o, &out, &len) < 0 ||
	    report_read(REPORT_JSON, out, len, &r, &q) < 0 ||
	    report_write(q, REPORT_JSON, o, &twice, &again) < 0)
		abort();
	free(out);
	free(twice);
	profile_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum report_format formats[] = { REPORT_JSON, REPORT_PPROF, REPORT_COLLAPSED };
	struct report_reading r = { .event = -1 };
	struct report_options o = { .idle = true, .threads = true };
	struct profile *p;

	if (size == 0 ||
	    report_read(formats[data[0] % 3], (const char *)data + 1, size - 1, &r, &p) < 0)
		return 0;
	o.events = profile_events(p);
	o.events = o.events ? o.events & -o.events : 1;
	write_all(p, &o);
	read_again(p, &o);
	profile_free(p);
	return 0;
}
