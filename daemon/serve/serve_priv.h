/* Inside the serve room: serve.c (requests and answers), clients.c (connections), api.c
 * (resources), one file for each resource, apart.c (answers that may take long). */
#pragma once

#include <cjson/cJSON.h>
#include <microhttpd.h>
#include "daemon/report/events.h"
#include "daemon/report/report.h"
#include "daemon/report/text_out.h"
#include "daemon/serve/serve.h"

#define CONNECTIONS_MAX	   256
#define CONNECTIONS_OF_UID 64 /* except for root, which may use all */
#define REFUSED_MAX	   64
#define RECORDINGS_MAX	   32
#define IDLE_S		   30u /* an inactive connection is closed after this time */
#define STREAM_IDLE_S	   600u /* a reader of events may pause for longer */

struct recording_entry;
struct client;
struct apart;

struct serve {
	struct host *host;
	struct loop *loop;
	struct MHD_Daemon *http;
	int listen_fd;
	struct loop_source *listen_source; /* NULL = accepting is not paused */
	struct loop_timer *listen_timer;
	struct client *clients;
	unsigned n_clients;
	int refused[REFUSED_MAX]; /* connections that only wait to be closed; -1 = none */
	unsigned next_refused;
	struct loop_timer *refused_timer;
	struct request *requests; /* requests in progress */
	struct apart *aparts; /* in the order of arrival */
	struct loop_timer *apart_timer;
	struct loop_source *source;
	struct loop_timer *timer;
	char socket[104];
	serve_reload_fn *reload; /* NULL = none */
	void *reload_userdata;
	struct recording_entry *recordings;
	uint64_t next_recording;
};

/* One request. MHD keeps it until the answer is sent; it is suspended while the answer is being
 * made. */
struct request {
	struct serve *serve;
	struct request *prev, *next; /* of serve->requests */
	struct MHD_Connection *connection;
	const char *method, *url; /* MHD's, valid as long as the request */
	uint64_t begin_mono_ns;
	int apart_fd; /* -1 = this is the daemon; else its child, and the answer goes to this file
		       */
	bool seen; /* headers were seen: the next call handles the request */
	bool answered;
	bool suspended;
	/* The daemon ends: whatever works on the request, or streams it, must let go of it. NULL =
	 * nothing does. */
	void (*on_end)(void *userdata);
	void *end_userdata;
};

/* serve.c: answers. Each returns MHD_YES/MHD_NO for the handler. */
enum MHD_Result answer_bytes(struct request *r, unsigned status, const char *content_type,
			     char *body, size_t len); /* takes @body */
enum MHD_Result answer_json(struct request *r, unsigned status, cJSON *json); /* takes @json */
/* Counts of a profile: samples in it, after every filter, and losses; sent as headers. */
struct report_counts {
	uint64_t samples, dropped;
};
/* A written profile, with report_samples() of it. Takes @body. */
enum MHD_Result answer_report(struct request *r, const struct profile *p, enum report_format format,
			      const struct report_options *o, uint64_t samples, char *body,
			      size_t len);
/* @len bytes of @fd from @offset on; @counts may be NULL. Takes @fd. */
enum MHD_Result answer_file(struct request *r, unsigned status, const char *content_type,
			    const struct report_counts *counts, int fd, size_t offset, size_t len);
enum MHD_Result answer_error(struct request *r, unsigned status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The answer comes later, from a callback: then answer_x() and serve_resume(). */
void serve_suspend(struct request *r);
void serve_resume(struct request *r);
void serve_run(struct serve *s); /* handles pending work on connections, without waiting */
const char *argument(struct request *r, const char *name); /* NULL = not given */
bool argument_is_set(struct request *r, const char *name); /* and is not "0" */
/* "60s", "1.5h", "2m30s"; a bare number is seconds. false = not a duration. */
bool parse_duration(const char *s, uint64_t *ret_ns);

/*
 * apart.c. answer_apart(): the function that answers @r is called again, in a child, where
 * is_apart() is true; its changes to memory are lost. A limited number of each kind runs at a time.
 */
enum apart_kind { APART_LIVE, APART_HISTORY, APART_KIND_COUNT };
static inline bool is_apart(const struct request *r)
{
	return r->apart_fd >= 0;
}
enum MHD_Result answer_apart(struct request *r, enum apart_kind kind);
/* In the child: writes the answer, once. Ends the process if there is no room. */
enum MHD_Result apart_write(struct request *r, unsigned status, const char *content_type,
			    const struct report_counts *counts, const char *body, size_t len);
void aparts_on_timer(void *userdata); /* of serve->apart_timer */
void aparts_free(struct serve *s); /* frees them: no request waits for any of them */

/* clients.c. MHD_NotifyConnectionCallback; @userdata is the serve */
void clients_on_change(void *userdata, struct MHD_Connection *connection, void **context,
		       enum MHD_ConnectionNotificationCode what);
int clients_listen(struct serve *s); /* begins to; 0 or -errno */
void clients_deinit(struct serve *s); /* closes the listening socket */

/* names.c */
struct selection {
	uint32_t pids[TARGETS_MAX];
	uint64_t start_times[TARGETS_MAX];
	uint32_t n;
};
/* The JVMs of the request's target= (none = all). Answers the error itself: -ENOENT. */
int api_select(struct request *r, struct selection *ret);
int api_select_known(struct request *r, struct selection *ret); /* as targets_next_known() */
bool is_selected(const struct selection *s, const struct target *t);
/* collected.c: bits of @events that none of @s collects, and a sentence in @buf about how to
 * collect the first. */
unsigned api_not_collected(struct host *h, const struct selection *s, unsigned events, char *buf,
			   size_t size);
/* Like api_select(), but -ENOENT is not answered. */
int api_select_quietly(struct request *r, struct selection *ret);
struct target *api_one_target(struct request *r, const char *word); /* NULL: answered */

/* api.c */
enum MHD_Result api_route(struct request *r, const char *method, const char *url);
/* format=, type=, threads=, annotate=, idle=, reverse=, include= and exclude= (which belong to the
 * request); type= is @events if it is not given. Answers the error itself: false. */
bool api_report(struct request *r, unsigned events, enum report_format *ret_format,
		struct report_options *ret);

/* last=, or from= and to=; the last minute without them. false = they are invalid. */
bool api_time_range(struct request *r, uint64_t *from, uint64_t *to);

/*
 * history.c. The JVMs selected by target=, service=, pod= and container= of a query about the past:
 * known ones, and those in the history of [from, to), which for target= are used only if no known
 * JVM matches. Every given key must match, with one of its values. @known receives the known ones,
 * as many as it holds. 0 (ret->n 0 = all), or negative and answered; in a child.
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

/* @p as a report; in a child. */
enum MHD_Result api_answer_profile(struct request *r, const struct profile *p,
				   enum report_format format, const struct report_options *options);

enum MHD_Result serve_status(struct request *r);
enum MHD_Result serve_metrics(struct request *r);
enum MHD_Result serve_top(struct request *r);
enum MHD_Result serve_events(struct request *r);
enum MHD_Result serve_locks(struct request *r);
enum MHD_Result serve_threads(struct request *r);
enum MHD_Result serve_traces(struct request *r);
/* traces.c: the last minutes of one trace, in the JVMs of @selected, as a new profile; @events: bits.
 * 0, -ENODATA (nothing of it is known) or -ENOMEM. In a child. */
int serve_trace_profile(struct request *r, const char *trace, const struct selection *selected,
			uint64_t from_ns, uint64_t to_ns, unsigned events, struct profile **ret);
enum MHD_Result serve_timeline(struct request *r);
/* locks.c; last= for both handlers (answers the error itself), and the selected JVMs: the named
 * ones, else all that stream */
int locks_last(struct request *r, uint64_t *ret_ns);
bool locks_is_asked_for(const struct selection *s, const struct target *t);
void locks_text_lock(struct text_out *to, const char *class_name, uint32_t identity);
/* thread_text.c: "tid":…,"ns_tid":… of a number that the host assigns, and for a virtual thread
 * "virtual_id":…; its name, which unnamed virtual threads get too; both as "tid":…,…,"thread":… */
void thread_ids_text(struct text_out *to, const struct target *t, uint32_t number);
void thread_name_text(struct text_out *to, const struct target *t, uint32_t number,
		      const char *name);
void thread_text(struct text_out *to, const struct target *t, uint32_t number, const char *name);
/* event_text.c: one line of JSON each */
void event_sample(struct text_out *to, struct host *h, const struct target *t,
		  const struct stream_sample *s, uint64_t real_ns);
/* A frame as text, in @buf or of the frame; never NULL. */
const char *event_frame_name(struct host *h, const struct target *t, const struct stream_frame *f,
			     char *buf, size_t size);
/* ,"trace":{"trace_id":…,"span_id":…}, or null */
void event_trace(struct text_out *to, const struct stream_context *trace);
/* [root ... leaf]; @node 0 = [] */
void event_stack(struct text_out *to, struct host *h, const struct target *t, uint32_t node);
/* @e as listeners get it. */
void event_offcpu(struct text_out *to, struct host *h, const struct target *t,
		  const struct offcpu_event *e, uint64_t real_ns);
void event_lock(struct text_out *to, struct host *h, const struct target *t,
		const struct stream_lock *w, bool idle, uint64_t real_ns);
/* control.c; @verb: attach or detach */
uid_t uid_of(struct request *r); /* the uid of the request */
enum MHD_Result serve_control(struct request *r, const char *method, const char *verb);
enum MHD_Result serve_settings(struct request *r, const char *method, const char *verb);
enum MHD_Result serve_recordings(struct request *r, const char *method, const char *rest);
/* sinks.c; @rest: NAME/test. sinks_json(): a list, empty without sinks. */
enum MHD_Result serve_sinks(struct request *r, const char *method, const char *rest);
cJSON *sinks_json(struct host *h);
struct metric_text;
void sinks_metrics(struct metric_text *m, struct host *h);
void recordings_free(struct serve *s);
