/* Shared by the files of the serve room: serve.c (requests and answers), clients.c
 * (connections), api.c (resources), one file for each resource, apart.c (answers that may take
 * long). */
#pragma once

#include <microhttpd.h>
#include "daemon/report/event_names.h"
#include "daemon/report/report.h"
#include "daemon/report/json_out.h"
#include "daemon/serve/serve.h"

#define CONNECTIONS_MAX	   256
#define CONNECTIONS_OF_UID 64 /* root may use all connections */
#define REFUSED_MAX	   64
#define RECORDINGS_MAX	   32
#define IDLE_S		   30u /* after this time an inactive connection is closed */
#define STREAM_IDLE_S	   600u /* a reader of events may pause longer */

struct recording_entry;
struct client;
struct apart;

struct serve {
	struct host *host;
	struct loop *loop;
	struct MHD_Daemon *http;
	int listen_fd;
	struct loop_source *listen_source; /* NULL while accepting pauses */
	struct loop_timer *listen_timer;
	struct client *clients;
	unsigned n_clients;
	int refused[REFUSED_MAX]; /* refused connections, to be closed soon; -1 = none */
	unsigned next_refused;
	struct loop_timer *refused_timer;
	struct request *requests; /* requests in progress */
	struct apart *aparts; /* in the order of arrival */
	struct loop_timer *apart_timer;
	struct loop_source *source;
	struct loop_timer *timer;
	char socket[104];
	serve_reload_fn *reload; /* NULL: there is no such resource */
	void *reload_userdata;
	struct recording_entry *recordings;
	uint64_t next_recording;
};

/* One request. It lives until its answer has been sent, and is suspended while the answer is
 * made. */
struct request {
	struct serve *serve;
	struct request *prev, *next; /* of serve->requests */
	struct MHD_Connection *connection;
	const char *method, *url; /* owned by MHD, valid as long as the request */
	uint64_t begin_mono_ns;
	int apart_fd; /* in a child: the file for the answer; -1 in the daemon */
	bool seen; /* the headers were seen: at its next call MHD wants the answer */
	bool answered;
	bool suspended;
	/* Called when the daemon ends, to stop the work on the request or the streaming of its
	 * answer. NULL = there is none. */
	void (*on_end)(void *userdata);
	void *end_userdata;
};

/* serve.c: answers. The handler returns what these return, MHD_YES or MHD_NO. */
enum MHD_Result answer_bytes(struct request *r, unsigned status, const char *content_type,
			     char *body, size_t len); /* takes @body */
/* Answers with what json_out.h has written to @json, or with 503 if that failed. Takes its text. */
enum MHD_Result answer_json(struct request *r, unsigned status, struct text_out *json);
/* Answers with a written report, and its counts as headers. Takes @body. */
enum MHD_Result answer_report(struct request *r, const struct profile *p, enum report_format format,
			      const struct report_options *o, char *body, size_t len);
/* Answers with @len bytes of @fd from @offset on. @counts may be NULL. Takes @fd. */
enum MHD_Result answer_file(struct request *r, unsigned status, const char *content_type,
			    const struct report_counts *counts, int fd, size_t offset, size_t len);
enum MHD_Result answer_error(struct request *r, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Suspends a request that a callback answers later, by answer_x() and then serve_resume(). */
void serve_suspend(struct request *r);
void serve_resume(struct request *r);
void serve_run(struct serve *s); /* does what MHD can do without waiting */
const char *argument(struct request *r, const char *name); /* NULL = not given */
bool argument_is_set(struct request *r, const char *name); /* given, and not as "0" */
/* Parses "60s", "1.5h", "2m30s"; a bare number is seconds. false: not a duration. */
bool parse_duration(const char *s, uint64_t *ret_ns);

/*
 * apart.c. answer_apart() has the request answered in a child: there the function that handles @r
 * is called again and is_apart() is true. Its changes to memory are lost. The number of
 * children of each kind is limited; other requests wait.
 */
enum apart_kind { APART_LIVE, APART_HISTORY, APART_KIND_COUNT };
static inline bool is_apart(const struct request *r)
{
	return r->apart_fd >= 0;
}
enum MHD_Result answer_apart(struct request *r, enum apart_kind kind);
/* In the child: writes the answer, once. Exits if there is no room for it. */
enum MHD_Result apart_write(struct request *r, unsigned status, const char *content_type,
			    const struct report_counts *counts, const char *body, size_t len);
void aparts_on_timer(void *userdata); /* serve->apart_timer: tries again to start waiting ones */
void aparts_free(struct serve *s); /* kills the children; no request may still wait for one */

/* clients.c. A MHD_NotifyConnectionCallback with the serve as @userdata. */
void clients_on_change(void *userdata, struct MHD_Connection *connection, void **context,
		       enum MHD_ConnectionNotificationCode what);
int clients_listen(struct serve *s); /* starts or resumes accepting; 0 or -errno */
void clients_deinit(struct serve *s); /* closes the listening socket */

/* names.c */
struct selection {
	uint32_t pids[TARGETS_MAX];
	uint64_t start_times[TARGETS_MAX];
	uint32_t n;
};
/* The JVMs that target= names (none = all). -ENOENT: the error has been answered. */
int api_select(struct request *r, struct selection *ret);
int api_select_known(struct request *r,
		     struct selection *ret); /* also ended ones, as targets_next_known() */
bool is_selected(const struct selection *s, const struct target *t);
/* collected.c: the bits of @events that none of @s collects. @buf gets a sentence about how to
 * collect the first of them. */
unsigned api_not_collected(struct host *h, const struct selection *s, unsigned events, char *buf,
			   size_t size);
/* Like api_select(), but -ENOENT has not been answered. */
int api_select_quietly(struct request *r, struct selection *ret);
struct target *api_one_target(struct request *r,
			      const char *word); /* NULL: the error has been answered */

/* api.c */
enum MHD_Result api_route(struct request *r, const char *method, const char *url);
/* Parses format=, type=, threads=, annotate=, idle=, reverse=, include= and exclude= (strings
 * belong to the request). @events replaces a missing type=. false: the error has been answered. */
bool api_report(struct request *r, unsigned events, enum report_format *ret_format,
		struct report_options *ret);

/* Parses last=, or from= and to=; without them the last minute. ns since 1970. false: they are
 * invalid. */
bool api_time_range(struct request *r, uint64_t *from, uint64_t *to);

/*
 * history.c. The JVMs that target=, service=, pod= and container= of a query about the past select:
 * known ones, and those in the history of [from, to); for target= the latter only if no known JVM
 * matches. Each given key must match with one of its values. @known gets the known ones, as many as
 * fit. 0 (ret->n 0 = all JVMs), or negative: the error has been answered. Only in a child, which
 * frees nothing.
 */
struct history_selection {
	uint32_t *pids;
	uint64_t *start_times;
	uint32_t n;
};
int history_select(struct request *r, uint64_t from, uint64_t to, struct selection *known,
		   struct history_selection *ret);
void history_selection_free(struct history_selection *s);
enum MHD_Result serve_history(struct request *r);

/* Answers with @p as a report. Only in a child. */
enum MHD_Result api_answer_profile(struct request *r, const struct profile *p,
				   enum report_format format, const struct report_options *options);

enum MHD_Result serve_status(struct request *r);
enum MHD_Result serve_metrics(struct request *r);
enum MHD_Result serve_top(struct request *r);
enum MHD_Result serve_events(struct request *r);
enum MHD_Result serve_locks(struct request *r);
enum MHD_Result serve_threads(struct request *r);
enum MHD_Result serve_traces(struct request *r);
/* traces.c: a new profile of one trace, from the last minutes of the JVMs in @selected; @events:
 * bits. 0, -ENODATA (no event belongs to it) or -ENOMEM. Only in a child. */
int serve_trace_profile(struct request *r, const char *trace, const struct selection *selected,
			uint64_t from_ns, uint64_t to_ns, unsigned events, struct profile **ret);
enum MHD_Result serve_timeline(struct request *r);
/* locks.c. locks_last() parses last=, or answers the error itself. locks_is_asked_for(): @t is
 * named, or no JVM is named and @t streams. */
int locks_last(struct request *r, uint64_t *ret_ns);
bool locks_is_asked_for(const struct selection *s, const struct target *t);
void locks_text_lock(struct text_out *to, const char *key, const char *class_name,
		     uint32_t identity);
/* thread_text.c writes fields of a JSON object: ids as "tid" and "ns_tid" for a number that the
 * host assigned, "virtual_id" for a virtual thread; the name, which an unnamed virtual thread gets
 * here; and both, the name as "thread". */
void thread_ids_text(struct text_out *to, const struct target *t, uint32_t number);
void thread_name_text(struct text_out *to, const char *key, const struct target *t, uint32_t number,
		      const char *name);
void thread_text(struct text_out *to, const struct target *t, uint32_t number, const char *name);
/* event_text.c: each writes one line of JSON. */
void event_sample(struct text_out *to, struct host *h, const struct target *t,
		  const struct stream_sample *s, uint64_t real_ns);
/* A frame as text: @buf, or a string of the frame; never NULL. */
const char *event_frame_name(struct host *h, const struct target *t, const struct stream_frame *f,
			     char *buf, size_t size);
/* Writes "trace":{"trace_id":…,"span_id":…}, or null for NULL. */
void event_trace(struct text_out *to, const struct stream_context *trace);
/* Writes the frames as a list, the root first; [] for @node 0. */
void event_stack(struct text_out *to, const char *key, struct host *h, const struct target *t,
		 uint32_t node);
/* An interval off the CPU. */
void event_offcpu(struct text_out *to, struct host *h, const struct target *t,
		  const struct offcpu_event *e, uint64_t real_ns);
void event_lock(struct text_out *to, struct host *h, const struct target *t,
		const struct stream_lock *w, bool idle, uint64_t real_ns);
/* control.c; @verb: attach or detach. */
uid_t uid_of(struct request *r); /* of the client */
enum MHD_Result serve_control(struct request *r, const char *method, const char *verb);
enum MHD_Result serve_settings(struct request *r, const char *method, const char *verb);
enum MHD_Result serve_recordings(struct request *r, const char *method, const char *rest);
/* sinks.c; @rest: NAME/test. sinks_json() writes a list, empty without sinks. */
enum MHD_Result serve_sinks(struct request *r, const char *method, const char *rest);
void sinks_json(struct text_out *to, const char *key, struct host *h);
struct metric_text;
void sinks_metrics(struct metric_text *m, struct host *h);
void recordings_free(struct serve *s);
