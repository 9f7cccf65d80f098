/* The page with the flame graph: the template with the profile's JSON in the place of
 * "@PROFILE@". Names may be hostile: so json_add_string() escapes every "<", and the page sets
 * text, never markup. */
#include "daemon/report/against.h"
#include "daemon/report/formats.h"

#include <string.h>

extern const char flamegraph_html[];

void write_html_against(struct text_out *t, const struct profile *p, const struct report_options *o,
			const struct against *a)
{
	static const char mark[] = "@PROFILE@";
	const char *at = strstr(flamegraph_html, mark);

	if (!at) {
		t->failed = true;
		return;
	}
	text_bytes(t, flamegraph_html, (size_t)(at - flamegraph_html));
	write_json_against(t, p, o, a);
	text_put(t, at + sizeof(mark) - 1);
}

void write_html(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	write_html_against(t, p, o, NULL);
}
