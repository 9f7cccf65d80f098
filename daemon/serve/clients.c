/*
 * Connections. They are accepted here and handed to libmicrohttpd, so that the listening socket is
 * always read and no user's connections take the place of all others'. A connection beyond a limit
 * gets a sentence that says so and is closed.
 */
#include "daemon/serve/serve_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/ground/clock.h"

#define ACCEPTS_MAX 64 /* in one call */
#define REFUSED_NS  NS_PER_S /* time for a refused client to read our answer */
#define NO_FDS_NS   (100 * NS_PER_MS) /* pause when descriptors or memory run out */

struct client {
	struct client *next;
	uid_t uid;
	int fd; /* owned by MHD */
	bool started; /* MHD has reported the connection */
};

/* The number of connections of @uid, and of all uids except root. */
static void clients_count(const struct serve *s, uid_t uid, unsigned *ret_own, unsigned *ret_others)
{
	*ret_own = *ret_others = 0;
	for (const struct client *c = s->clients; c; c = c->next) {
		*ret_own += c->uid == uid;
		*ret_others += c->uid != 0;
	}
}

/* Root may use all connections, so that the daemon can be examined whatever other users do. */
static bool clients_has_room(const struct serve *s, uid_t uid)
{
	unsigned own, others;

	clients_count(s, uid, &own, &others);
	if (s->n_clients >= CONNECTIONS_MAX)
		return false;
	return uid == 0 ||
	       (own < CONNECTIONS_OF_UID && others < CONNECTIONS_MAX - CONNECTIONS_OF_UID);
}

static void clients_refuse(struct serve *s, int fd, uid_t uid)
{
	CLEANUP(freep) char *body = NULL;
	struct text_out json = { 0 };
	char sentence[160], text[400];
	size_t len;
	int n;

	snprintf(sentence, sizeof(sentence),
		 "kindlingd has too many connections (%u, at most %d of one uid, this is uid %u); "
		 "try again",
		 s->n_clients, CONNECTIONS_OF_UID, (unsigned)uid);
	json_begin_object(&json, NULL);
	json_add_string(&json, "error", sentence);
	json_end_object(&json);
	n = text_take(&json, &body, &len) < 0
		    ? 0
		    : snprintf(
			      text, sizeof(text),
			      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
			      "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
			      len, body);
	(void)send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	/* closing the socket now would reset the connection: the client might not read the
	 * answer */
	fd_close(s->refused[s->next_refused]);
	s->refused[s->next_refused] = fd;
	s->next_refused = (s->next_refused + 1) % REFUSED_MAX;
	loop_timer_set(s->refused_timer, REFUSED_NS, 0);
}

static void on_refused_long_enough(void *userdata)
{
	struct serve *s = userdata;

	for (int i = 0; i < REFUSED_MAX; i++)
		s->refused[i] = fd_close(s->refused[i]);
}

static void clients_forget(struct serve *s, struct client *c)
{
	struct client **link;

	for (link = &s->clients; *link && *link != c; link = &(*link)->next)
		;
	*link = c->next;
	s->n_clients--;
	free(c);
}

/* Takes @fd. */
static void clients_take(struct serve *s, int fd)
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);
	struct client *c;

	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	c = clients_has_room(s, who.uid) ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		clients_refuse(s, fd, who.uid);
		return;
	}
	*c = (struct client){ .next = s->clients, .uid = who.uid, .fd = fd };
	s->clients = c;
	s->n_clients++;
	(void)MHD_add_connection(s->http, fd, NULL, 0);
}

void clients_on_change(void *userdata, struct MHD_Connection *connection, void **context,
		       enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info;
	struct serve *s = userdata;
	struct client *c;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			clients_forget(s, *context);
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	for (c = s->clients; c && (c->started || !info || c->fd != info->connect_fd); c = c->next)
		;
	*context = c;
	if (c)
		c->started = true;
}

/* Forgets connections that MHD never reported: it had no memory for them. */
static void forget_lost(struct serve *s)
{
	for (struct client *c = s->clients, *next; c; c = next) {
		next = c->next;
		if (!c->started)
			clients_forget(s, c);
	}
}

static void on_listen(void *userdata, uint32_t events)
{
	struct serve *s = userdata;
	int fd = 0;

	(void)events;
	for (int i = 0; i < ACCEPTS_MAX && fd >= 0; i++) {
		fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			clients_take(s, fd);
	}
	/* the listening socket is level-triggered: without a pause the callback would run again
	 * at once */
	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		s->listen_source = loop_source_free(s->listen_source);
		loop_timer_set(s->listen_timer, NO_FDS_NS, 0);
	}
	serve_run(s);
	forget_lost(s);
}

static void on_pause_over(void *userdata)
{
	struct serve *s = userdata;

	if (loop_add(s->loop, s->listen_fd, EPOLLIN, on_listen, s, &s->listen_source) < 0)
		loop_timer_set(s->listen_timer, NO_FDS_NS, 0);
}

int clients_listen(struct serve *s)
{
	int r = loop_timer_add(s->loop, UINT64_MAX, 0, on_pause_over, s, &s->listen_timer);

	if (r == 0)
		r = loop_timer_add(s->loop, UINT64_MAX, 0, on_refused_long_enough, s,
				   &s->refused_timer);
	return r < 0 ? r
		     : loop_add(s->loop, s->listen_fd, EPOLLIN, on_listen, s, &s->listen_source);
}

void clients_deinit(struct serve *s)
{
	s->listen_source = loop_source_free(s->listen_source);
	s->listen_timer = loop_timer_free(s->listen_timer);
	s->refused_timer = loop_timer_free(s->refused_timer);
	on_refused_long_enough(s);
	s->listen_fd = fd_close(s->listen_fd);
	while (s->clients)
		clients_forget(s, s->clients);
}
