/* The flame graph page: the template with the profile's JSON where "@PROFILE@" stands. Names are
 * hostile: text_json() leaves no "<" in them, the page sets text, never markup. */
#include "daemon/report/formats.h"

#include <string.h>

extern const char flamegraph_html[];

void write_html(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	static const char mark[] = "@PROFILE@";
	const char *at = strstr(flamegraph_html, mark);

	if (!at) {
		t->failed = true;
		return;
	}
	text_bytes(t, flamegraph_html, (size_t)(at - flamegraph_html));
	write_json(t, p, o);
	text_put(t, at + sizeof(mark) - 1);
}
