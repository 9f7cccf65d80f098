/*
 * The daemon's side of kindling-upload: starts it if the settings name sinks, tells it once a
 * second how far the history goes, and restarts it when it has ended or the settings were read
 * again. Messages from it are not trusted, because it talks to servers.
 */
#include "daemon/host/host_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "daemon/core/warden.h"
#include "daemon/ground/beside.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/host/wanted.h"

#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MAX_NS   (30 * NS_PER_S)
#define LIVED_NS       NS_PER_S /* a program that ran for this time did not fail at its start */
#define END_NS	       (5 * NS_PER_S) /* the time that it has to end by itself */
#define TESTS_MAX      8

struct uploads_test {
	char name[UPLOAD_NAME_MAX];
	host_test_fn *done; /* NULL = this entry is free */
	void *userdata;
};

struct uploads {
	struct host *host;
	char program[256];
	const char *file; /* path of the settings */
	pid_t pid; /* 0 = it does not run */
	int pidfd, fd;
	struct loop_source *source, *end_source;
	uint64_t begin_mono_ns,
		kill_mono_ns; /* kill_mono_ns: it is killed then; 0 = it is not to end */
	uint64_t again_mono_ns, again_wait_ns;
	char *status; /* as it last reported; NULL = not yet */
	struct uploads_test tests[TESTS_MAX];
	struct wanted *wanted; /* its recordings; NULL without memory */
};

/* ---- tests ----------------------------------------------------------------------------------- */

static void uploads_end_tests(struct uploads *u, const char *name, bool ok, const char *text)
{
	for (int i = 0; i < TESTS_MAX; i++) {
		struct uploads_test t = u->tests[i];

		if (!t.done || (name && strcmp(t.name, name) != 0))
			continue;
		u->tests[i].done = NULL;
		t.done(t.userdata, ok, text);
	}
}

int host_uploads_test(struct host *h, const char *name, host_test_fn *done, void *userdata)
{
	struct upload_question q = { .ask = UPLOAD_TEST };
	struct uploads *u = h->uploads;
	bool known = false;

	for (unsigned i = 0; i < h->config->n_sinks; i++)
		known |= strcmp(h->config->sinks[i].name, name) == 0;
	if (!known)
		return -ENOENT;
	if (!u || u->fd < 0)
		return -EAGAIN;
	for (int i = 0; i < TESTS_MAX; i++) {
		struct uploads_test *t = &u->tests[i];

		if (t->done)
			continue;
		snprintf(q.name, sizeof(q.name), "%s", name);
		if (send(u->fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return -errno;
		*t = (struct uploads_test){ .done = done, .userdata = userdata };
		snprintf(t->name, sizeof(t->name), "%s", name);
		return 0;
	}
	return -EBUSY;
}

void host_uploads_forget(struct host *h, void *userdata)
{
	for (int i = 0; h->uploads && i < TESTS_MAX; i++)
		if (h->uploads->tests[i].userdata == userdata)
			h->uploads->tests[i].done = NULL;
}

/* ---- messages from kindling-upload ----------------------------------------------------------- */

const char *host_uploads_status(const struct host *h)
{
	return h->uploads ? h->uploads->status : NULL;
}

static void uploads_close(struct uploads *u)
{
	u->source = loop_source_free(u->source);
	u->fd = fd_close(u->fd);
}

static void uploads_report_recorded(void *userdata, const struct upload_recorded *answer, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec io = { (void *)(uintptr_t)answer, sizeof(*answer) };
	struct msghdr message = { .msg_iov = &io, .msg_iovlen = 1 };
	struct uploads *u = userdata;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
	}
	/* if it does not accept the answer now, it asks again */
	if (u->fd >= 0)
		(void)sendmsg(u->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* false: the message is no request for a recording. */
static bool uploads_on_request(struct uploads *u, const void *message, size_t len)
{
	struct upload_record ask;

	if (len != sizeof(ask))
		return false;
	memcpy(&ask, message, sizeof(ask));
	if (ask.say != UPLOAD_RECORD)
		return false;
	if (u->wanted)
		wanted_ask(u->wanted, &ask);
	return true;
}

static void uploads_on_answer(void *userdata, uint32_t events)
{
	static struct upload_answer a;
	const size_t head = offsetof(struct upload_answer, text);
	struct uploads *u = userdata;
	ssize_t n = recv(u->fd, &a, sizeof(a), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && uploads_on_request(u, &a, (size_t)n))
		return;
	if (n < (ssize_t)head || a.len >= sizeof(a.text) || (size_t)n != head + a.len + 1) {
		uploads_close(u); /* it has ended, or has sent something invalid */
		return;
	}
	a.text[a.len] = '\0';
	a.name[sizeof(a.name) - 1] = '\0';
	if (a.say == UPLOAD_TESTED) {
		uploads_end_tests(u, a.name, a.ok, a.text);
	} else if (a.say == UPLOAD_STATUS) {
		free(u->status);
		u->status = strdup(a.text);
	}
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static void uploads_on_end(void *userdata, uint32_t events)
{
	struct uploads *u = userdata;
	bool asked = u->kill_mono_ns;
	int status = 0;

	(void)events;
	if (warden_reap(u->pid, &status, NULL) == 0)
		return;
	u->end_source = loop_source_free(u->end_source);
	u->pidfd = fd_close(u->pidfd);
	uploads_close(u);
	u->pid = 0;
	u->kill_mono_ns = 0;
	uploads_end_tests(u, NULL, false,
			  "kindling-upload has ended; look at the log of kindlingd");
	/* one that ran for a while is restarted at once; one that fails at its start is tried
	 * less and less often */
	if (clock_mono_ns() - u->begin_mono_ns > LIVED_NS)
		u->again_wait_ns = 0;
	u->again_mono_ns = asked ? 0 : clock_mono_ns() + u->again_wait_ns;
	if (asked)
		return;
	if (status == 0)
		log_info("upload.ended", "status=0 again_in_s=%.0f",
			 (double)u->again_wait_ns / 1e9);
	else
		log_err("upload.ended", "status=%d again_in_s=%.0f", status,
			(double)u->again_wait_ns / 1e9);
	u->again_wait_ns = u->again_wait_ns ? 2 * u->again_wait_ns : AGAIN_FIRST_NS;
	if (u->again_wait_ns > AGAIN_MAX_NS)
		u->again_wait_ns = AGAIN_MAX_NS;
}

static int uploads_start(struct uploads *u)
{
	char *argv[] = { u->program, (char *)(uintptr_t)u->host->config->state_dir,
			 (char *)(uintptr_t)u->file, NULL };
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = warden_start(WARDEN_UPLOAD, argv, (struct warden_fd[]){ { pair[1], UPLOAD_FD } }, 1,
			 &u->pid, &u->pidfd);
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		u->pid = 0;
		return r;
	}
	u->fd = pair[0];
	u->begin_mono_ns = clock_mono_ns();
	r = loop_add(u->host->loop, u->fd, EPOLLIN, uploads_on_answer, u, &u->source);
	if (r == 0)
		r = loop_add(u->host->loop, u->pidfd, EPOLLIN, uploads_on_end, u, &u->end_source);
	if (r < 0)
		uploads_close(u); /* this makes it end */
	return r;
}

/* Closes the socket, which makes kindling-upload drop its work and end. */
static void uploads_stop(struct uploads *u)
{
	uploads_close(u);
	u->kill_mono_ns = clock_mono_ns() + END_NS;
}

static void uploads_send_tick(struct uploads *u)
{
	struct host *h = u->host;
	struct upload_question q = { .ask = UPLOAD_TICK,
				     .settled_real_ns = host_settled_real_ns(h) };

	_Static_assert(sizeof(q.not_stored) == sizeof(h->not_stored), "one an event");
	memcpy(q.not_stored, h->not_stored, sizeof(q.not_stored));
	if (send(u->fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(q))
		memset(h->not_stored, 0, sizeof(h->not_stored));
}

void uploads_on_second(struct host *h)
{
	struct uploads *u = h->uploads;
	uint64_t now = clock_mono_ns();
	int r;

	if (!u)
		return;
	if (u->wanted)
		wanted_on_second(u->wanted);
	if (u->fd >= 0) {
		uploads_send_tick(u);
	} else if (u->pid) {
		if (u->kill_mono_ns && now > u->kill_mono_ns)
			warden_kill(u->pid);
		else if (!u->kill_mono_ns) /* it has closed its end of the socket, but is still
					      there */
			u->kill_mono_ns = now + END_NS;
	} else if (h->config->n_sinks && now >= u->again_mono_ns) {
		r = uploads_start(u);
		if (r < 0) {
			log_err("upload.start", "error=%s", log_str(strerror(-r)));
			u->again_mono_ns = now + AGAIN_MAX_NS;
		}
	} else if (!h->config->n_sinks) {
		free(u->status);
		u->status = NULL;
	}
}

void host_uploads_begin(struct host *h, const char *file)
{
	struct uploads *u = calloc(1, sizeof(*u));

	if (!u || !h->store ||
	    !beside_find_program(u->program, sizeof(u->program), "kindling-upload")) {
		if (u && h->config->n_sinks)
			log_err("upload.start",
				"error=\"kindling-upload is not beside kindlingd\"");
		free(u);
		return;
	}
	u->host = h;
	u->file = file;
	u->fd = u->pidfd = -1;
	(void)wanted_new(h, uploads_report_recorded, u, &u->wanted);
	h->uploads = u;
	uploads_on_second(h);
}

/* Restarts it even if no setting has changed: the secrets may have. */
void uploads_on_settings(struct host *h)
{
	struct uploads *u = h->uploads;

	if (!u)
		return;
	u->again_mono_ns = u->again_wait_ns = 0;
	if (u->fd >= 0)
		uploads_stop(u);
}

struct uploads *uploads_free(struct uploads *u)
{
	if (!u)
		return NULL;
	uploads_end_tests(u, NULL, false, "kindlingd is stopping");
	wanted_free(u->wanted);
	loop_source_free(u->end_source);
	uploads_close(u);
	fd_close(u->pidfd);
	free(u->status);
	free(u);
	return NULL;
}
