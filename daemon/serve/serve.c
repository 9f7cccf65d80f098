/*
 * Runs libmicrohttpd in the daemon's loop, which watches MHD's epoll descriptor. No call blocks.
 */
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/value.h"

#define END_NS (200 * NS_PER_MS) /* time for clients to read the last lines at the end */

void serve_run(struct serve *s)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(s->http);
	if (MHD_get_timeout(s->http, &ms) == MHD_YES)
		loop_timer_set(s->timer, ms * NS_PER_MS, 0);
}

static void on_http(void *userdata, uint32_t events)
{
	(void)events;
	serve_run(userdata);
}

static void serve_on_timer(void *userdata)
{
	serve_run(userdata);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void add_number(struct MHD_Response *response, const char *header, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	MHD_add_response_header(response, header, text);
}

static enum MHD_Result serve_queue(struct request *r, unsigned status, const char *content_type,
				   const struct report_counts *counts,
				   struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", content_type);
	if (counts) {
		add_number(response, "Kindling-Samples", counts->samples);
		add_number(response, "Kindling-Dropped", counts->dropped);
		add_number(response, "Kindling-Filtered", counts->filtered);
		add_number(response, "Kindling-Idle", counts->idle);
	}
	result = MHD_queue_response(r->connection, status, response);
	MHD_destroy_response(response);
	r->answered = true;
	return result;
}

/* Takes @body. */
static enum MHD_Result serve_answer(struct request *r, unsigned status, const char *content_type,
				    const struct report_counts *counts, char *body, size_t len)
{
	struct MHD_Response *response;

	if (is_apart(r))
		return apart_write(r, status, content_type, counts, body, len);
	response = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(body);
	return serve_queue(r, status, content_type, counts, response);
}

enum MHD_Result answer_bytes(struct request *r, unsigned status, const char *content_type,
			     char *body, size_t len)
{
	return serve_answer(r, status, content_type, NULL, body, len);
}

enum MHD_Result answer_report(struct request *r, const struct profile *p, enum report_format format,
			      const struct report_options *o, char *body, size_t len)
{
	struct report_counts counts;

	report_count(p, o, &counts);
	return serve_answer(r, 200, report_content_type(format), &counts, body, len);
}

enum MHD_Result answer_file(struct request *r, unsigned status, const char *content_type,
			    const struct report_counts *counts, int fd, size_t offset, size_t len)
{
	struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(len, fd, offset);

	if (!response)
		fd_close(fd);
	return serve_queue(r, status, content_type, counts, response);
}

enum MHD_Result answer_json(struct request *r, unsigned status, struct text_out *json)
{
	char *body;
	size_t len;

	if (text_take(json, &body, &len) < 0)
		return answer_error(r, 503, "no memory");
	return answer_bytes(r, status, "application/json", body, len);
}

enum MHD_Result answer_error(struct request *r, unsigned status, const char *fmt, ...)
{
	struct text_out json = { 0 };
	char text[512], *body;
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_begin_object(&json, NULL);
	json_add_string(&json, "error", text);
	json_end_object(&json);
	if (text_take(&json, &body, &len) < 0)
		return MHD_NO;
	return answer_bytes(r, status, "application/json", body, len);
}

void serve_suspend(struct request *r)
{
	r->suspended = true;
	MHD_suspend_connection(r->connection);
}

void serve_resume(struct request *r)
{
	r->suspended = false;
	MHD_resume_connection(r->connection);
	loop_timer_set(r->serve->timer, 0, 0);
}

const char *argument(struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool argument_is_set(struct request *r, const char *name)
{
	const char *value = argument(r, name);

	return value && strcmp(value, "0") != 0;
}

bool parse_duration(const char *s, uint64_t *ret)
{
	return value_length_ns(s, ret) == 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
				  const char *url, const char *method, const char *version,
				  const char *upload, size_t *upload_len, void **state)
{
	struct request *r = *state;

	(void)version;
	(void)upload;
	if (!r) {
		r = calloc(1, sizeof(*r));
		if (!r)
			return MHD_NO;
		r->serve = userdata;
		r->connection = connection;
		r->apart_fd = -1;
		r->next = r->serve->requests;
		if (r->next)
			r->next->prev = r;
		r->serve->requests = r;
		*state = r;
		return MHD_YES;
	}
	if (*upload_len) { /* no resource takes a body: discard it */
		*upload_len = 0;
		return MHD_YES;
	}
	if (r->seen) /* the answer is queued, or could not be made */
		return r->answered ? MHD_YES : MHD_NO;
	r->seen = true;
	r->method = method;
	r->url = url;
	r->begin_mono_ns = clock_mono_ns();
	return api_route(r, method, url);
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode why)
{
	struct serve *s = userdata;
	struct request *r = *state;

	(void)connection;
	(void)why;
	*state = NULL;
	if (!r)
		return;
	if (r->prev)
		r->prev->next = r->next;
	else
		s->requests = r->next;
	if (r->next)
		r->next->prev = r->prev;
	free(r);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static bool serve_has_listener(const struct sockaddr_un *addr)
{
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0;
}

static int listen_on(struct serve *s, struct fault *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct group *group = getgrnam("kindling");
	mode_t old;
	int r;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s->socket);
	if (serve_has_listener(&addr))
		return fault_set(f, EADDRINUSE, FAULT_INTERNAL,
				 "another kindlingd answers on %.70s", s->socket);
	(void)unlink(s->socket);
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	old = umask(0117);
	r = s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
			    listen(s->listen_fd, CONNECTIONS_MAX) < 0
		    ? -errno
		    : 0;
	(void)umask(old);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "listen on %.70s: ", s->socket);
	if (group && chown(s->socket, 0, group->gr_gid) < 0)
		log_warn("serve.group", "socket=%s error=%s", s->socket, log_str(strerror(errno)));
	return 0;
}

int serve_new(struct host *h, struct serve **ret, struct fault *f)
{
	CLEANUP(serve_freep) struct serve *s = calloc(1, sizeof(*s));
	const union MHD_DaemonInfo *info;
	int r;

	if (!s)
		return fault_set(f, ENOMEM, FAULT_INTERNAL, "no memory");
	s->host = h;
	s->loop = host_loop(h);
	s->listen_fd = -1;
	for (int i = 0; i < REFUSED_MAX; i++)
		s->refused[i] = -1;
	snprintf(s->socket, sizeof(s->socket), "%s", host_config(h)->socket);
	r = listen_on(s, f);
	if (r < 0) {
		s->socket[0] = '\0'; /* another daemon's: not to be removed */
		return r;
	}
	/* no limit for MHD itself: at a limit it would stop accepting connections */
	s->http = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		on_request, s, MHD_OPTION_CONNECTION_LIMIT, 2u * CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_NOTIFY_CONNECTION,
		clients_on_change, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768, MHD_OPTION_END);
	info = s->http ? MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return fault_set(f, EIO, FAULT_INTERNAL, "cannot start the HTTP server");
	r = loop_timer_add(s->loop, NS_PER_S, 0, serve_on_timer, s, &s->timer);
	if (r == 0)
		r = loop_timer_add(s->loop, UINT64_MAX, 0, aparts_on_timer, s, &s->apart_timer);
	if (r == 0)
		r = loop_add(s->loop, info->epoll_fd, EPOLLIN, on_http, s, &s->source);
	if (r == 0)
		r = clients_listen(s);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "cannot start the HTTP server: ");
	*ret = TAKE_PTR(s);
	return 0;
}

void serve_on_reload(struct serve *s, serve_reload_fn *reload, void *userdata)
{
	s->reload = reload;
	s->reload_userdata = userdata;
}

/* Ends all requests: event streams get their last lines, pending requests a refusal, if their
 * readers take them now. MHD aborts the process if a connection is suspended when it is stopped. */
static void end_requests(struct serve *s)
{
	uint64_t until_ns = clock_mono_ns() + END_NS;

	for (struct request *r = s->requests; r; r = r->next) {
		if (r->on_end)
			r->on_end(r->end_userdata);
		if (!r->suspended)
			continue;
		if (!r->answered)
			(void)answer_error(r, 503, "kindlingd is stopping");
		serve_resume(r);
	}
	while (s->requests && clock_mono_ns() < until_ns) {
		struct timespec pause = { .tv_nsec = (long)NS_PER_MS };

		serve_run(s);
		(void)nanosleep(&pause, NULL);
	}
}

struct serve *serve_free(struct serve *s)
{
	if (!s)
		return NULL;
	loop_source_free(s->source);
	if (s->http) {
		end_requests(s);
		MHD_stop_daemon(s->http);
	}
	clients_deinit(s);
	aparts_free(s);
	loop_timer_free(s->apart_timer);
	loop_timer_free(s->timer);
	recordings_free(s);
	if (s->socket[0])
		(void)unlink(s->socket);
	free(s);
	return NULL;
}
