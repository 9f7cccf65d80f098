/* Resources and their handlers; docs/api.md. */
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/report/patterns.h"

bool api_report(struct request *r, unsigned events, enum report_format *ret_format,
		struct report_options *ret)
{
	const char *format = argument(r, "format"), *type = argument(r, "type");
	int f = format ? report_format_by_name(format) : REPORT_JSON;
	char why[300], list[200];

	*ret = (struct report_options){
		.threads = argument_is_set(r, "threads"),
		.annotate = argument_is_set(r, "annotate"),
		.idle = argument_is_set(r, "idle"),
		.merge = argument_is_set(r, "merge"),
		.reverse = argument_is_set(r, "reverse"),
		.include = argument(r, "include"),
		.exclude = argument(r, "exclude"),
		.events = events,
	};
	if (f < 0)
		(void)answer_error(r, 400, "the format must be %s, not \"%s\"",
				   report_format_list(false, list, sizeof(list)), format);
	else if (type && !report_events_by_name(type, &ret->events))
		(void)answer_error(r, 400,
				   "the type must be cpu, lock, alloc, wall or offcpu, not \"%s\"",
				   type);
	else if (!report_takes((enum report_format)f, ret->events, why, sizeof(why)))
		(void)answer_error(r, 400, "%s", why);
	else if (ret->reverse && !report_reverses((enum report_format)f, why, sizeof(why)))
		(void)answer_error(r, 400, "%s", why);
	else if (ret->include && !report_pattern_is_fine(ret->include, why, sizeof(why)))
		(void)answer_error(r, 400, "include: %s", why);
	else if (ret->exclude && !report_pattern_is_fine(ret->exclude, why, sizeof(why)))
		(void)answer_error(r, 400, "exclude: %s", why);
	else {
		*ret_format = (enum report_format)f;
		return true;
	}
	return false;
}

/* ---- /v1/profile ----------------------------------------------------------------------------- */

/* Is one of the @absent events, which are not collected now, missing from the profile, too? */
static bool is_missing(const struct profile *p, unsigned absent)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (absent & 1u << e && !p->accounts.of[e].taken)
			return true;
	return false;
}

enum MHD_Result api_answer_profile(struct request *r, const struct profile *p,
				   enum report_format format, const struct report_options *options)
{
	size_t len;
	char *out;
	int e = report_write(p, format, options, &out, &len);

	if (e == -ETIME)
		return answer_error(r, 400, "matching this pattern takes too long");
	if (e < 0)
		return answer_error(r, 500, "the report could not be written: %s", strerror(-e));
	return answer_report(r, p, format, options, out, len);
}

bool api_time_range(struct request *r, uint64_t *from, uint64_t *to)
{
	const char *last = argument(r, "last"), *a = argument(r, "from"), *b = argument(r, "to");
	uint64_t now = clock_real_ns(), n = 60 * NS_PER_S;

	*to = now;
	if (a || b) {
		*from = a ? strtoull(a, NULL, 10) : 0;
		*to = b ? strtoull(b, NULL, 10) : now;
		return *from < *to;
	}
	if (last && !parse_duration(last, &n))
		return false;
	*from = n < now ? now - n : 0;
	return true;
}

static enum MHD_Result get_profile(struct request *r)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	static struct selection selected;
	struct history_selection which; /* freed with this child */
	struct profile_filter filter = { .thread = argument(r, "thread") };
	struct report_options options;
	enum report_format format;
	unsigned absent;
	uint64_t from, to;
	char why[400];
	int e;

	if (!is_apart(r))
		return answer_apart(r, APART_HISTORY);
	if (!api_report(r, 1u << WIRE_EVENT_CPU, &format, &options))
		return MHD_YES;
	if (!api_time_range(r, &from, &to))
		return answer_error(
			r, 400,
			"last must be a duration such as 60s; from and to are ns since 1970");
	if (history_select(r, from, to, &selected, &which) < 0)
		return MHD_YES;
	filter.pids = which.pids;
	filter.start_times = which.start_times;
	filter.n_pids = which.n;
	filter.events = options.events;
	filter.no_idle = !options.idle;
	absent = api_not_collected(r->serve->host, &selected, options.events, why, sizeof(why));
	if (argument(r, "trace"))
		e = serve_trace_profile(r, argument(r, "trace"), &selected, from, to,
					options.events, &p);
	else
		e = host_query(r->serve->host, from, to, &filter, &p);
	if (e == -ENODATA)
		return answer_error(r, 404, "no event of this time belongs to the trace \"%s\"",
				    argument(r, "trace"));
	if (e < 0)
		return answer_error(r, 503, "kindlingd is busy, try again: %s", strerror(-e));
	/* what is not collected now may have been when this profile was recorded */
	if (is_missing(p, absent))
		return answer_error(r, 409, "%s", why);
	return api_answer_profile(r, p, format, &options);
}

/* ---- routes ---------------------------------------------------------------------------------- */

enum MHD_Result api_route(struct request *r, const char *method, const char *url)
{
	bool get = strcmp(method, "GET") == 0;

	if (strncmp(url, "/v1/recordings", 14) == 0 && (url[14] == '\0' || url[14] == '/'))
		return serve_recordings(r, method, url + 14);
	if (strncmp(url, "/v1/targets/", 12) == 0)
		return serve_control(r, method, url + 12);
	if (strncmp(url, "/v1/sinks/", 10) == 0)
		return serve_sinks(r, method, url + 10);
	if (strncmp(url, "/v1/settings/", 13) == 0)
		return serve_settings(r, method, url + 13);
	if (!get)
		return answer_error(r, 405, "kindlingd has no %s %s", method, url);
	if (strcmp(url, "/healthz") == 0)
		return answer_bytes(r, 200, "text/plain", strdup("ok\n"), 3);
	if (strcmp(url, "/metrics") == 0)
		return serve_metrics(r);
	if (strcmp(url, "/v1/status") == 0)
		return serve_status(r);
	if (strcmp(url, "/v1/profile") == 0)
		return get_profile(r);
	if (strcmp(url, "/v1/history") == 0)
		return serve_history(r);
	if (strcmp(url, "/v1/top") == 0)
		return serve_top(r);
	if (strcmp(url, "/v1/events") == 0)
		return serve_events(r);
	if (strcmp(url, "/v1/locks") == 0)
		return serve_locks(r);
	if (strcmp(url, "/v1/threads") == 0)
		return serve_threads(r);
	if (strcmp(url, "/v1/traces") == 0)
		return serve_traces(r);
	if (strcmp(url, "/v1/timeline") == 0)
		return serve_timeline(r);
	return answer_error(r, 404, "kindlingd has no %s; docs/api.md lists its resources", url);
}
