/* See worker.h. */
#include "daemon/core/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

struct job {
	void (*run)(void *userdata);
	void (*done)(void *userdata);
	void *userdata;
};

/* Jobs [tail, ran) have run and wait for done(); [ran, head) wait to run. Indices only grow. */
struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool quit;
	int event_fd;
	struct loop_source *source;
	struct job jobs[WORKER_JOBS_MAX];
	unsigned head, ran, tail;
};

static void *worker_main(void *userdata)
{
	struct worker *w = userdata;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct job job;

		while (w->ran == w->head && !w->quit)
			pthread_cond_wait(&w->wake, &w->lock);
		if (w->ran == w->head)
			break;
		job = w->jobs[w->ran % WORKER_JOBS_MAX];
		pthread_mutex_unlock(&w->lock);
		job.run(job.userdata);
		pthread_mutex_lock(&w->lock);
		w->ran++;
		(void)eventfd_write(w->event_fd, 1);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void worker_run_done(struct worker *w)
{
	for (;;) {
		struct job job;

		pthread_mutex_lock(&w->lock);
		if (w->tail == w->ran) {
			pthread_mutex_unlock(&w->lock);
			return;
		}
		job = w->jobs[w->tail++ % WORKER_JOBS_MAX];
		pthread_mutex_unlock(&w->lock);
		if (job.done)
			job.done(job.userdata);
	}
}

static void worker_on_event(void *userdata, uint32_t events)
{
	struct worker *w = userdata;
	eventfd_t n;

	(void)events;
	(void)eventfd_read(w->event_fd, &n);
	worker_run_done(w);
}

int worker_new(struct loop *loop, struct worker **ret)
{
	struct worker *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int r;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->event_fd < 0 ? -errno
			    : loop_add(loop, w->event_fd, EPOLLIN, worker_on_event, w, &w->source);
	if (r == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		r = -pthread_create(&w->thread, NULL, worker_main, w);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (r < 0) {
		loop_source_free(w->source);
		fd_close(w->event_fd);
		free(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	worker_run_done(w);
	loop_source_free(w->source);
	fd_close(w->event_fd);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	free(w);
	return NULL;
}

int worker_submit(struct worker *w, void (*run)(void *userdata), void (*done)(void *userdata),
		  void *userdata)
{
	int r = -EBUSY;

	pthread_mutex_lock(&w->lock);
	/* done() may submit another job while worker_free() runs, after the thread has ended */
	if (!w->quit && w->head - w->tail < WORKER_JOBS_MAX) {
		w->jobs[w->head++ % WORKER_JOBS_MAX] = (struct job){ run, done, userdata };
		pthread_cond_signal(&w->wake);
		r = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}
