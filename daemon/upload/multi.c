/* See multi.h. curl's sockets become sources of the loop, curl's one timer a timer of the loop. */
#include "daemon/upload/multi.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include "daemon/ground/clock.h"

#define KEPT_CONNECTIONS 32L

struct multi {
	struct loop *loop;
	CURLM *curl;
	struct loop_timer *timer;
};

struct multi_socket {
	struct multi *multi;
	struct loop_source *source;
	curl_socket_t fd;
};

static void multi_finish_all(struct multi *m)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(m->curl, &left))) {
		struct multi_transfer *t = NULL;
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
		t->done(t, code); /* @message and @t may have been freed */
	}
}

static void multi_on_socket(void *userdata, uint32_t events)
{
	struct multi_socket *k = userdata;
	struct multi *m = k->multi;
	int what = 0, running;

	if (events & (EPOLLIN | EPOLLHUP))
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & EPOLLERR)
		what |= CURL_CSELECT_ERR;
	curl_multi_socket_action(m->curl, k->fd, what, &running); /* @k may have been freed */
	multi_finish_all(m);
}

/* curl tells which events it wants for its socket @fd from now on. */
static int multi_watch(CURL *easy, curl_socket_t fd, int what, void *userdata, void *socket_data)
{
	struct multi *m = userdata;
	struct multi_socket *k = socket_data;
	uint32_t events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (k)
			loop_source_free(k->source);
		free(k);
		return 0;
	}
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return -1;
		k->multi = m;
		k->fd = fd;
		curl_multi_assign(m->curl, fd, k);
	}
	if (what != CURL_POLL_OUT)
		events |= EPOLLIN;
	if (what != CURL_POLL_IN)
		events |= EPOLLOUT;
	k->source = loop_source_free(k->source);
	return loop_add(m->loop, fd, events, multi_on_socket, k, &k->source) < 0 ? -1 : 0;
}

static void multi_on_timer(void *userdata)
{
	struct multi *m = userdata;
	int running;

	curl_multi_socket_action(m->curl, CURL_SOCKET_TIMEOUT, 0, &running);
	multi_finish_all(m);
}

/* curl sets its timer. @ms: 0 = at once, but curl forbids calls from within this callback; -1 =
 * never */
static int multi_set_timer(CURLM *curl, long ms, void *userdata)
{
	struct multi *m = userdata;
	uint64_t delay_ns = ms > 0 ? (uint64_t)ms * NS_PER_MS : 1;

	(void)curl;
	loop_timer_set(m->timer, ms < 0 ? UINT64_MAX : delay_ns, 0);
	return 0;
}

int multi_new(struct loop *loop, struct multi **ret)
{
	struct multi *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->loop = loop;
	r = loop_timer_add(loop, UINT64_MAX, 0, multi_on_timer, m, &m->timer);
	if (r == 0 && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		r = -ENOMEM;
	m->curl = r == 0 ? curl_multi_init() : NULL;
	if (!m->curl) {
		multi_free(m);
		return r < 0 ? r : -ENOMEM;
	}
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, multi_watch);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, multi_set_timer);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
	*ret = m;
	return 0;
}

struct multi *multi_free(struct multi *m)
{
	if (!m)
		return NULL;
	if (m->curl)
		curl_multi_cleanup(m->curl);
	loop_timer_free(m->timer);
	free(m);
	return NULL;
}

struct loop *multi_loop(const struct multi *m)
{
	return m->loop;
}

int multi_add(struct multi *m, struct multi_transfer *t)
{
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	return curl_multi_add_handle(m->curl, t->easy) == CURLM_OK ? 0 : -ENOMEM;
}

void multi_remove(struct multi *m, struct multi_transfer *t)
{
	curl_multi_remove_handle(m->curl, t->easy);
}
