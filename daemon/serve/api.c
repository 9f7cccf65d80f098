/* Resources and who answers them; docs/api.md. */
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/clock.h"
#include "daemon/report/patterns.h"

static bool is_set(struct request *r, const char *name)
{
	const char *value = argument(r, name);

	return value && strcmp(value, "0") != 0;
}

bool api_report(struct request *r, unsigned events, enum report_format *ret_format,
		struct report_options *ret)
{
	const char *format = argument(r, "format"), *type = argument(r, "type");
	int f = format ? report_format_by_name(format) : REPORT_JSON;
	char why[300];

	*ret = (struct report_options){
		.threads = is_set(r, "threads"),
		.annotate = is_set(r, "annotate"),
		.idle = is_set(r, "idle"),
		.reverse = is_set(r, "reverse"),
		.include = argument(r, "include"),
		.exclude = argument(r, "exclude"),
		.events = events,
	};
	if (f < 0)
		(void)answer_error(
			r, 400,
			"the format must be html, collapsed, txt, pb.gz, json or jfr, not \"%s\"",
			format);
	else if (type && !report_events_by_name(type, &ret->events))
		(void)answer_error(r, 400, "the type must be cpu, lock, alloc or wall, not \"%s\"",
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

struct rendering {
	struct request *request; /* NULL = the daemon ends, nobody waits any more */
	enum report_format format;
	struct report_options options;
	struct profile *profile;
	uint64_t samples;
	unsigned absent; /* events that are not collected now, and a sentence about that */
	char why[400];
	char *out;
	size_t len;
	int error;
};

static void run_render(void *userdata)
{
	struct rendering *x = userdata;

	x->error = report_write(x->profile, x->format, &x->options, &x->out, &x->len);
	if (x->error == 0)
		x->samples = report_samples(x->profile, &x->options);
}

static void on_end(void *userdata)
{
	((struct rendering *)userdata)->request = NULL;
}

static void rendering_free(struct rendering *x)
{
	if (x->request) {
		x->request->on_end = NULL;
		serve_resume(x->request);
	}
	profile_free(x->profile);
	free(x);
}

static void done_render(void *userdata)
{
	struct rendering *x = userdata;

	if (!x->request)
		free(x->error < 0 ? NULL : x->out);
	else if (x->error == -ETIME)
		(void)answer_error(x->request, 400,
				   "this pattern takes too long for the names of these frames");
	else if (x->error < 0)
		(void)answer_error(x->request, 500, "the report could not be written: %s",
				   strerror(-x->error));
	else
		(void)answer_report(x->request, x->profile, x->format, &x->options, x->samples,
				    x->out, x->len);
	rendering_free(x);
}

static bool is_missing(const struct rendering *x)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (x->absent & 1u << e && !x->profile->books.of[e].taken)
			return true;
	return false;
}

static void on_profile(void *userdata, struct profile *p, int error)
{
	struct rendering *x = userdata;

	x->profile = p;
	if (!x->request) {
		rendering_free(x);
		return;
	}
	/* it may have been collected then */
	if (!error && is_missing(x)) {
		(void)answer_error(x->request, 409, "%s", x->why);
		rendering_free(x);
		return;
	}
	if (!error &&
	    worker_submit(host_worker(x->request->serve->host), run_render, done_render, x) == 0)
		return;
	(void)answer_error(x->request, 503, "kindlingd is busy, try again: %s",
			   strerror(error ? -error : EBUSY));
	rendering_free(x);
}

static bool time_range(struct request *r, uint64_t *from, uint64_t *to)
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
	static struct selection selected;
	struct profile_filter filter = { .thread = argument(r, "thread") };
	struct report_options options;
	enum report_format format;
	struct rendering *x;
	uint64_t from, to;
	int e;

	if (!api_report(r, 1u << WIRE_EVENT_CPU, &format, &options))
		return MHD_YES;
	if (!time_range(r, &from, &to))
		return answer_error(
			r, 400,
			"last must be a duration such as 60s; from and to are ns since 1970");
	if (api_select(r, &selected) < 0)
		return MHD_YES;
	filter.pids = selected.pids;
	filter.start_times = selected.start_times;
	filter.n_pids = selected.n;
	filter.events = options.events;
	filter.no_idle = !options.idle;
	x = calloc(1, sizeof(*x));
	if (!x)
		return MHD_NO;
	x->request = r;
	x->format = format;
	x->options = options;
	x->absent = api_not_collected(r->serve->host, &selected, options.events, x->why,
				      sizeof(x->why));
	r->on_end = on_end;
	r->end_userdata = x;
	serve_suspend(r);
	e = host_query(r->serve->host, from, to, &filter, on_profile, x);
	if (e < 0)
		on_profile(x, NULL, e);
	return MHD_YES;
}

/* ---- routes ---------------------------------------------------------------------------------- */

enum MHD_Result api_route(struct request *r, const char *method, const char *url)
{
	bool get = strcmp(method, "GET") == 0;

	if (strncmp(url, "/v1/recordings", 14) == 0 && (url[14] == '\0' || url[14] == '/'))
		return serve_recordings(r, method, url + 14);
	if (strncmp(url, "/v1/targets/", 12) == 0)
		return serve_control(r, method, url + 12);
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
	if (strcmp(url, "/v1/top") == 0)
		return serve_top(r);
	if (strcmp(url, "/v1/events") == 0)
		return serve_events(r);
	if (strcmp(url, "/v1/locks") == 0)
		return serve_locks(r);
	if (strcmp(url, "/v1/threads") == 0)
		return serve_threads(r);
	return answer_error(r, 404, "kindlingd has no %s; docs/api.md lists its resources", url);
}
