/*
 * See loop.h. Sources that are freed during a round stay on a list until its end, because epoll may
 * already have returned events that point to them; fn = NULL marks them.
 */
#include "daemon/core/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include "daemon/ground/clock.h"

#define ROUND_EVENTS_MAX 64

struct loop_source {
	struct loop *loop;
	int fd;
	loop_io_fn *fn; /* NULL = freed */
	void *userdata;
	struct loop_source *next_dead;
};

struct loop_timer {
	struct loop *loop;
	uint64_t due_mono_ns; /* 0 = not armed */
	uint64_t period_ns;
	loop_timer_fn *fn;
	void *userdata;
	struct loop_timer *prev, *next;
};

struct loop {
	int epoll_fd;
	int signal_fd;
	sigset_t signals;
	loop_signal_fn *signal_fn[_NSIG];
	void *signal_userdata[_NSIG];
	struct loop_source *signal_source;
	struct loop_source *dead;
	struct loop_timer *timers;
	struct loop_timer *next_timer; /* where loop_run_timers() continues */
	uint64_t first_mono_ns; /* no timer is due before this; saves a search each round */
	struct loop_now now; /* zeros = not read in this round */
	bool stopped;
	int result;
};

int loop_new(struct loop **ret)
{
	CLEANUP(loop_freep) struct loop *l = NULL;

	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->signal_fd = -1;
	l->first_mono_ns = UINT64_MAX;
	sigemptyset(&l->signals);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return -errno;
	*ret = TAKE_PTR(l);
	return 0;
}

static void loop_free_removed(struct loop *l)
{
	while (l->dead) {
		struct loop_source *s = l->dead;

		l->dead = s->next_dead;
		free(s);
	}
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	l->signal_source = loop_source_free(l->signal_source);
	loop_free_removed(l);
	fd_close(l->signal_fd);
	fd_close(l->epoll_fd);
	free(l);
	return NULL;
}

int loop_add(struct loop *l, int fd, uint32_t events, loop_io_fn *fn, void *userdata,
	     struct loop_source **ret)
{
	struct loop_source *s = calloc(1, sizeof(*s));
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (!s)
		return -ENOMEM;
	s->loop = l;
	s->fd = fd;
	s->fn = fn;
	s->userdata = userdata;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		int r = -errno;

		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct loop_source *loop_source_free(struct loop_source *s)
{
	if (!s)
		return NULL;
	(void)epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	s->fn = NULL;
	s->next_dead = s->loop->dead;
	s->loop->dead = s;
	return NULL;
}

int loop_timer_add(struct loop *l, uint64_t delay_ns, uint64_t period_ns, loop_timer_fn *fn,
		   void *userdata, struct loop_timer **ret)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->loop = l;
	t->fn = fn;
	t->userdata = userdata;
	t->next = l->timers;
	if (t->next)
		t->next->prev = t;
	l->timers = t;
	loop_timer_set(t, delay_ns, period_ns);
	*ret = t;
	return 0;
}

void loop_timer_set(struct loop_timer *t, uint64_t delay_ns, uint64_t period_ns)
{
	if (__builtin_add_overflow(clock_mono_ns(), delay_ns, &t->due_mono_ns))
		t->due_mono_ns = UINT64_MAX;
	t->period_ns = period_ns;
	if (t->due_mono_ns < t->loop->first_mono_ns)
		t->loop->first_mono_ns = t->due_mono_ns;
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	struct loop *l;

	if (!t)
		return NULL;
	l = t->loop;
	if (l->next_timer == t)
		l->next_timer = t->next;
	if (t->prev)
		t->prev->next = t->next;
	else
		l->timers = t->next;
	if (t->next)
		t->next->prev = t->prev;
	free(t);
	return NULL;
}

/* Runs the timers that are due, and finds when the next one is. */
static void loop_run_timers(struct loop *l)
{
	uint64_t now = clock_mono_ns();

	if (now < l->first_mono_ns)
		return;
	l->first_mono_ns = UINT64_MAX; /* loop_timer_set() in a callback may lower it, too */
	for (struct loop_timer *t = l->timers; t; t = l->next_timer) {
		bool due = t->due_mono_ns && t->due_mono_ns <= now;

		l->next_timer = t->next;
		if (due)
			t->due_mono_ns = t->period_ns ? now + t->period_ns : 0;
		if (t->due_mono_ns && t->due_mono_ns < l->first_mono_ns)
			l->first_mono_ns = t->due_mono_ns;
		if (due)
			t->fn(t->userdata);
	}
	l->next_timer = NULL;
}

static void loop_on_signal(void *userdata, uint32_t events)
{
	struct loop *l = userdata;
	struct signalfd_siginfo info;

	(void)events;
	if (read(l->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo < _NSIG && l->signal_fn[info.ssi_signo])
		l->signal_fn[info.ssi_signo](l->signal_userdata[info.ssi_signo],
					     (int)info.ssi_signo);
}

int loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *userdata)
{
	int fd;

	if (signo <= 0 || signo >= _NSIG)
		return -EINVAL;
	sigaddset(&l->signals, signo);
	if (sigprocmask(SIG_BLOCK, &l->signals, NULL) < 0)
		return -errno;
	fd = signalfd(l->signal_fd, &l->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	l->signal_fn[signo] = fn;
	l->signal_userdata[signo] = userdata;
	if (l->signal_fd >= 0)
		return 0;
	l->signal_fd = fd;
	return loop_add(l, fd, EPOLLIN, loop_on_signal, l, &l->signal_source);
}

/* How long epoll may wait, ms: until the first timer is due or @timeout_ns have passed, rounded up
 * so that it does not wake too early; at most an hour. */
static int loop_wait_ms(const struct loop *l, uint64_t timeout_ns)
{
	uint64_t now = clock_mono_ns();
	uint64_t wait_ns = timeout_ns;

	if (l->first_mono_ns <= now)
		return 0;
	if (l->first_mono_ns - now < wait_ns)
		wait_ns = l->first_mono_ns - now;
	if (wait_ns >= 3600 * NS_PER_S)
		return 3600 * 1000;
	return (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS);
}

const struct loop_now *loop_now(struct loop *l)
{
	if (!l->now.mono_ns)
		l->now = (struct loop_now){ clock_mono_ns(), clock_real_ns() };
	return &l->now;
}

int loop_round(struct loop *l, uint64_t timeout_ns)
{
	struct epoll_event events[ROUND_EVENTS_MAX];
	int n;

	n = epoll_wait(l->epoll_fd, events, ROUND_EVENTS_MAX, loop_wait_ms(l, timeout_ns));
	if (n < 0 && errno != EINTR)
		return -errno;
	l->now = (struct loop_now){ 0 };
	for (int i = 0; i < n; i++) {
		struct loop_source *s = events[i].data.ptr;

		if (s->fn)
			s->fn(s->userdata, events[i].events);
	}
	loop_run_timers(l);
	loop_free_removed(l);
	return 0;
}

int loop_run(struct loop *l)
{
	l->stopped = false;
	while (!l->stopped) {
		int r = loop_round(l, UINT64_MAX);

		if (r < 0)
			return r;
	}
	return l->result;
}

void loop_stop(struct loop *l, int result)
{
	l->stopped = true;
	l->result = result;
}
