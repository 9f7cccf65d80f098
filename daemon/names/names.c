/* See names.h: runs kindling-names, and keeps the JVMs that wait for its answers; again.h: those
 * that have gone on without one. */
#include "daemon/names/names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "daemon/core/log_limit.h"
#include "daemon/core/warden.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/names/again.h"
#include "daemon/names/names_message.h"

/* After a failure no questions are asked during a pause, and JVMs go on without waiting. The pause
 * doubles with each further failure. */
#define PAUSE_FIRST_NS (NS_PER_S / 2)
#define PAUSE_MAX_NS   (30 * NS_PER_S)
#define WAIT_NS	       (10 * NS_PER_S) /* longest time that a JVM waits for its turn */

struct waiting {
	struct waiting *next;
	uint64_t since_mono_ns, seen_mono_ns;
	char sandbox[WARDEN_NAMES_ID_SIZE]; /* the pod to ask about; "" = the container */
	bool again; /* the question about a container is repeated, for JVMs that have gone on */
	struct jvm jvm; /* with `again` only container_id, and what the runtime answers */
};

struct names {
	struct loop *loop;
	char program[256], path[108];
	struct names_ops ops;
	void *userdata;
	pid_t child; /* 0 = it does not run */
	int pidfd, fd;
	struct loop_source *source, *end_source;
	bool killed;
	uint64_t number; /* of the current question, which is about `first` */
	struct waiting *first, **end;
	struct loop_timer *begin; /* asks the first question, see names_ask() */
	struct loop_timer *timer; /* deadline of the answer */
	uint64_t pause_ns, again_mono_ns; /* the last pause, and its end; 0 = there is none */
	struct again again;
	struct loop_timer *again_timer; /* the next question about one of them */
	struct names_status status;
};

/* ---- waiting JVMs ---------------------------------------------------------------------------- */

static void names_queue(struct names *n, struct waiting *w)
{
	w->since_mono_ns = clock_mono_ns();
	*n->end = w;
	n->end = &w->next;
	/* asked from the loop, so that no function of names_ops is called before the caller
	 * returns */
	if (n->status.waiting++ == 0)
		loop_timer_set(n->begin, 0, 0);
}

/* Takes the first JVM out of the queue and passes it on. */
static void names_pass_on(struct names *n, bool answered)
{
	struct waiting *w = n->first;

	n->first = w->next;
	if (!n->first)
		n->end = &n->first;
	n->status.waiting--;
	if (!w->again)
		n->ops.on_jvm(n->userdata, &w->jvm, w->seen_mono_ns);
	else if (answered)
		n->ops.on_later(n->userdata, &w->jvm);
	free(w);
}

/* Passes on the first JVM without an answer; its container is asked about again later. */
static void names_pass_on_unanswered(struct names *n)
{
	struct waiting *w = n->first;

	if (w->again) {
		again_fail(&n->again, w->jvm.container_id, clock_mono_ns());
	} else {
		n->status.unanswered++;
		again_add(&n->again, w->jvm.container_id, clock_mono_ns());
	}
	names_pass_on(n, false);
}

/* Passes on all JVMs without an answer. The pause has begun, so names_ops cannot queue more. */
static void names_pass_on_all(struct names *n)
{
	while (n->first)
		names_pass_on_unanswered(n);
}

/* ---- containers that are asked about again --------------------------------------------------- */

/* Sets the timer for the next of them; new JVMs come first. */
static void names_plan_again(struct names *n)
{
	const struct again_entry *e = n->first ? NULL : again_next(&n->again);
	uint64_t now = clock_mono_ns(), at = e ? e->next_mono_ns : UINT64_MAX;

	if (e && at < n->again_mono_ns)
		at = n->again_mono_ns;
	loop_timer_set(n->again_timer, !e ? UINT64_MAX : at > now ? at - now : 0, 0);
}

static void names_on_again(void *userdata)
{
	struct names *n = userdata;
	const struct again_entry *e = n->first ? NULL : again_next(&n->again);
	struct waiting *w;

	if (e && e->next_mono_ns <= clock_mono_ns()) {
		w = n->ops.lives(n->userdata, e->container_id) ? calloc(1, sizeof(*w)) : NULL;
		if (w) {
			w->again = true;
			memcpy(w->jvm.container_id, e->container_id, sizeof(e->container_id));
			names_queue(n, w);
			return;
		}
		again_remove(&n->again, e->container_id);
	}
	names_plan_again(n);
}

/* ---- failures -------------------------------------------------------------------------------- */

static const char *names_why(int error)
{
	switch (error) {
	case -ENOENT:
		return "there is no such socket";
	case -ECONNREFUSED:
		return "nobody listens there";
	case -EAGAIN:
	case -ETIMEDOUT:
		return "it does not answer within 3 seconds";
	case -ECONNRESET:
		return "it hung up";
	case -EREMOTEIO:
		return "it refuses the question; does it speak CRI's runtime.v1?";
	case -EPROTO:
		return "it does not speak gRPC";
	case -EMSGSIZE:
		return "its answer has more than 1 MiB";
	case -EPROTOTYPE:
		return "it is not a stream socket";
	default:
		return strerror(-error);
	}
}

static void names_set_pause(struct names *n)
{
	n->pause_ns = n->pause_ns ? 2 * n->pause_ns : PAUSE_FIRST_NS;
	if (n->pause_ns > PAUSE_MAX_NS)
		n->pause_ns = PAUSE_MAX_NS;
	n->again_mono_ns = clock_mono_ns() + n->pause_ns;
}

__attribute__((format(printf, 2, 3))) static void names_fail(struct names *n, const char *fmt, ...)
{
	static struct log_limit limit = { .burst = 2, .per_s = 1 };
	char error[sizeof(n->status.error)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(error, sizeof(error), fmt, args);
	va_end(args);
	loop_timer_set(n->timer, UINT64_MAX, 0);
	names_set_pause(n);
	if (strcmp(error, n->status.error) != 0 && log_allowed(&limit, "event=names.error"))
		log_warn("names.error", "error=%s", log_str(error));
	memcpy(n->status.error, error, sizeof(error));
	names_pass_on_all(n);
	names_plan_again(n);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Closes the socket of kindling-names and kills it; the current question has no answer then. */
static void names_stop(struct names *n)
{
	n->source = loop_source_free(n->source);
	n->fd = fd_close(n->fd);
	if (n->child && !n->killed)
		warden_kill(n->child);
	n->killed = true;
}

static void names_on_end(void *userdata, uint32_t events)
{
	struct names *n = userdata;
	bool killed = n->killed;
	int status = 0;

	(void)events;
	if (warden_reap(n->child, &status, NULL) == 0)
		return;
	n->end_source = loop_source_free(n->end_source);
	n->pidfd = fd_close(n->pidfd);
	n->child = 0;
	names_stop(n);
	if (!killed)
		names_fail(n, "kindling-names ended with status %d", status);
}

static void names_on_answer(void *userdata, uint32_t events);

static int names_start(struct names *n)
{
	char *argv[] = { n->program, NULL };
	int pair[2], r;

	if (n->child)
		return n->killed ? -EBUSY : 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = warden_start(WARDEN_NAMES, argv, (struct warden_fd[]){ { pair[1], NAMES_FD } }, 1,
			 &n->child, &n->pidfd);
	close(pair[1]);
	n->fd = pair[0];
	n->killed = false;
	if (r < 0)
		n->child = 0;
	else
		r = loop_add(n->loop, n->fd, EPOLLIN, names_on_answer, n, &n->source);
	if (r == 0)
		r = loop_add(n->loop, n->pidfd, EPOLLIN, names_on_end, n, &n->end_source);
	if (r < 0)
		names_stop(n);
	return r;
}

/* ---- questions and answers ------------------------------------------------------------------- */

/* Asks about the first JVM. false: that failed, and names_fail() has passed on all JVMs. */
static bool names_ask_next(struct names *n)
{
	const struct waiting *w = n->first;
	int r = names_start(n);

	if (r < 0) {
		names_fail(n, "kindling-names cannot be started: %s", strerror(-r));
		return false;
	}
	r = w->sandbox[0] ? warden_ask_names(n->path, WARDEN_NAMES_SANDBOX, w->sandbox, ++n->number)
			  : warden_ask_names(n->path, WARDEN_NAMES_CONTAINER, w->jvm.container_id,
					     ++n->number);
	if (r < 0) {
		names_fail(n, "%s: %s", n->path, names_why(r));
		return false;
	}
	loop_timer_set(n->timer, NAMES_MESSAGE_MS * NS_PER_MS, 0);
	return true;
}

/* Asks the next question. JVMs that have waited for too long are passed on without an answer. */
static void names_go_on(struct names *n)
{
	loop_timer_set(n->timer, UINT64_MAX, 0);
	while (n->first && clock_mono_ns() - n->first->since_mono_ns > WAIT_NS)
		names_pass_on_unanswered(n);
	if (n->first)
		(void)names_ask_next(n);
	else
		names_plan_again(n);
}

/* kindling-names has not answered in time: it hangs, or was stopped. */
static void names_on_timer(void *userdata)
{
	struct names *n = userdata;

	names_stop(n);
	names_fail(n, "kindling-names does not answer");
}

static void names_count(struct names *n, const struct waiting *w, bool known)
{
	if (w->again) {
		n->status.answered_later++;
		again_remove(&n->again, w->jvm.container_id);
	} else if (known) {
		n->status.named++;
	} else {
		n->status.unknown++;
	}
}

static void names_take(struct names *n, struct names_answer *a)
{
	struct waiting *w = n->first;
	bool has_pod = a->result == 0 && !w->sandbox[0] && a->sandbox[0];

	n->status.error[0] = '\0';
	n->pause_ns = n->again_mono_ns = 0;
	if (a->result == 0)
		names_add(&w->jvm, &a->jvm);
	if (has_pod) {
		memcpy(w->sandbox, a->sandbox, sizeof(w->sandbox));
	} else {
		names_count(n, w, a->result == 0 || w->sandbox[0]);
		names_pass_on(n, true);
	}
	names_go_on(n);
}

/* An attacker may control kindling-names by the data it reads, so its answers are checked. */
static void names_on_answer(void *userdata, uint32_t events)
{
	static struct names_answer a;
	struct names *n = userdata;
	ssize_t len = recv(n->fd, &a, sizeof(a), MSG_DONTWAIT);

	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len != (ssize_t)sizeof(a)) {
		names_stop(n);
		names_fail(n, "kindling-names has ended");
		return;
	}
	if (!n->first || a.number != n->number)
		return;
	jvm_end_texts(&a.jvm);
	a.sandbox[sizeof(a.sandbox) - 1] = '\0';
	if (a.result < 0 && a.result != -ENOENT)
		names_fail(n, "%s: %s", n->path, names_why(a.result));
	else
		names_take(n, &a);
}

bool names_ask(struct names *n, const struct jvm *jvm, uint64_t seen_mono_ns)
{
	uint64_t now = clock_mono_ns();
	struct waiting *w;

	if (!jvm->container_id[0])
		return false;
	w = now < n->again_mono_ns || n->status.waiting >= NAMES_WAITING_MAX
		    ? NULL
		    : calloc(1, sizeof(*w));
	if (!w) {
		n->status.unanswered++;
		again_add(&n->again, jvm->container_id, now);
		names_plan_again(n);
		return false;
	}
	w->seen_mono_ns = seen_mono_ns;
	w->jvm = *jvm;
	names_queue(n, w);
	return true;
}

void names_status(const struct names *n, struct names_status *ret)
{
	*ret = n->status;
	ret->asking_again = n->again.n;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

static void names_on_begin(void *userdata)
{
	names_go_on(userdata);
}

int names_new(struct loop *loop, const char *program, const char *path, const struct names_ops *ops,
	      void *userdata, struct names **ret)
{
	struct names *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->loop = loop;
	snprintf(n->program, sizeof(n->program), "%s", program);
	snprintf(n->path, sizeof(n->path), "%s", path);
	n->status.path = n->path;
	n->ops = *ops;
	n->userdata = userdata;
	n->fd = n->pidfd = -1;
	n->end = &n->first;
	r = loop_timer_add(loop, UINT64_MAX, 0, names_on_timer, n, &n->timer);
	if (r == 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, names_on_begin, n, &n->begin);
	if (r == 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, names_on_again, n, &n->again_timer);
	if (r < 0) {
		names_free(n);
		return r;
	}
	r = names_start(n); /* so that a missing program is reported at once */
	if (r < 0)
		names_fail(n, "kindling-names cannot be started: %s", strerror(-r));
	*ret = n;
	return 0;
}

struct names *names_free(struct names *n)
{
	if (!n)
		return NULL;
	names_stop(n);
	if (n->child)
		(void)warden_reap(n->child, NULL, NULL);
	loop_source_free(n->end_source);
	fd_close(n->pidfd);
	loop_timer_free(n->timer);
	loop_timer_free(n->begin);
	loop_timer_free(n->again_timer);
	again_deinit(&n->again);
	while (n->first) {
		struct waiting *w = n->first;

		n->first = w->next;
		free(w);
	}
	free(n);
	return NULL;
}
