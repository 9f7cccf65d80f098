/* See look.h: starts the children, asks them, and gives up those that do not answer. */
#include "daemon/discovery/look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "daemon/core/log_limit.h"
#include "daemon/core/tenant.h"
#include "daemon/core/warden.h"
#include "daemon/discovery/container.h"
#include "daemon/discovery/look_priv.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/proc.h"

#define CHILD_FD 3

struct lane {
	struct look *owner;
	pid_t child; /* 0 = none yet */
	int fd;
	struct loop_source *source;
	struct look_ticket *ticket; /* the current question; NULL = none */
	uint64_t asked_mono_ns;
	unsigned turns; /* timer ticks since then; a pause of the daemon itself does not count */
};

/* A child that was given up, and has not ended yet. */
struct given_up {
	pid_t child;
	uint64_t tenant; /* the tenant of its question; 0 = it had none */
};

struct look {
	struct loop *loop;
	char program[256];
	struct lane lanes[LOOK_LANES];
	struct given_up given_up[LOOK_STUCK_ALL];
	unsigned n_given_up;
	uint64_t number;
	struct look_queue queue;
	struct loop_timer *timer;
	struct look_counts counts;
};

/* ---- tenants -------------------------------------------------------------------------------- */

uint64_t look_tenant_of(pid_t pid)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int pid_dfd = proc_open(proc_dfd, pid);
	char text[8192], id[CONTAINER_ID_SIZE] = "", name[TENANT_SIZE];
	struct proc_status status = { .uid = 0 };

	if (pid_dfd >= 0 && proc_read(pid_dfd, "status", text, sizeof(text)) > 0)
		(void)proc_parse_status(text, &status);
	if (pid_dfd >= 0 && proc_read(pid_dfd, "cgroup", text, sizeof(text)) > 0)
		(void)container_id_from_cgroup(text, NULL, id);
	return tenant_number(tenant_name(name, id, status.uid));
}

/* ---- children that were given up ------------------------------------------------------------ */

static void look_reap_given_up(struct look *l)
{
	for (unsigned i = l->n_given_up; i-- > 0;) {
		struct look_tenant *t = queue_tenant(&l->queue, l->given_up[i].tenant);

		if (warden_reap(l->given_up[i].child, NULL, NULL) == 0)
			continue;
		if (t) {
			t->stuck--;
			l->queue.stuck--;
		}
		l->given_up[i] = l->given_up[--l->n_given_up];
	}
}

static void look_note_given_up(struct look *l, pid_t child, struct look_tenant *tenant)
{
	if (l->n_given_up == LOOK_STUCK_ALL)
		return;
	l->given_up[l->n_given_up++] = (struct given_up){ child, tenant ? tenant->number : 0 };
	if (tenant) {
		tenant->stuck++;
		l->queue.stuck++;
	}
}

/* Frees the lane for another question, and returns the one that it had. */
static struct look_ticket *look_free_lane(struct lane *lane)
{
	struct look_ticket *t = TAKE_PTR(lane->ticket);

	if (!t)
		return NULL;
	t->asked = false;
	t->tenant->asked--;
	t->tenant->used_ns += clock_mono_ns() - lane->asked_mono_ns;
	return t;
}

/* Gives up the child, which may never end. Returns its question. */
static struct look_ticket *look_give_up(struct lane *lane)
{
	struct look_ticket *t = look_free_lane(lane);

	lane->source = loop_source_free(lane->source);
	lane->fd = fd_close(lane->fd);
	if (lane->child) {
		warden_kill(lane->child);
		look_note_given_up(lane->owner, lane->child, t ? t->tenant : NULL);
	}
	lane->child = 0;
	return t;
}

/* ---- starting children ---------------------------------------------------------------------- */

static int look_spawn(const char *program, int fd, pid_t *ret)
{
	char *argv[] = { (char *)(uintptr_t)program, NULL };
	const struct warden_fd fds[] = { { fd, CHILD_FD } };
	CLEANUP(fd_closep) int pidfd = -1;

	return warden_start(WARDEN_LOOK, argv, fds, ARRAY_SIZE(fds), ret, &pidfd);
}

static void look_on_answer(void *userdata, uint32_t events);

static int look_start(struct lane *lane)
{
	CLEANUP(fd_closep) int theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	lane->fd = pair[0];
	theirs = pair[1];
	r = look_spawn(lane->owner->program, theirs, &lane->child);
	if (r < 0)
		lane->child = 0;
	else
		r = loop_add(lane->owner->loop, lane->fd, EPOLLIN, look_on_answer, lane,
			     &lane->source);
	if (r < 0)
		(void)look_give_up(lane);
	return r;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void look_deliver(struct look_ticket *t, const struct look_answer *a, int fds[LOOK_FDS])
{
	look_fn *fn = t->fn;
	void *userdata = t->userdata;

	ticket_free(t);
	if (fn)
		fn(userdata, a, fds);
	for (int i = 0; i < LOOK_FDS; i++)
		fd_close(fds[i]);
}

static void look_fail(struct look_ticket *t, int result)
{
	struct look_answer a = { .number = t->q.number, .result = result };
	int fds[LOOK_FDS] = { -1, -1 };

	if (result != -EIO)
		t->owner->counts.refused++;
	look_deliver(t, &a, fds);
}

static void refuse_some(struct look *l)
{
	struct look_ticket *t;
	int result;

	while ((t = queue_refused(&l->queue, &result)))
		look_fail(t, result);
}

static void look_go_on(struct look *l);

static void look_on_answer(void *userdata, uint32_t events)
{
	struct lane *lane = userdata;
	struct look *l = lane->owner;
	struct look_ticket *t;
	struct look_answer a;
	int fds[LOOK_FDS];
	ssize_t n = look_receive(lane->fd, &a, sizeof(a), fds, MSG_DONTWAIT);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != (ssize_t)sizeof(a)) {
		t = look_give_up(lane);
		if (t)
			look_fail(t, -EIO);
	} else if (lane->ticket && a.number == lane->ticket->q.number) {
		/* an attacker may control the child by the text it reads, so answers are checked */
		if (lane->ticket->q.kind == LOOK_JVM)
			jvm_end_texts(&a.jvm);
		else if (lane->ticket->q.kind == LOOK_FACTS)
			allowed_check(&a.facts.allowed);
		look_deliver(look_free_lane(lane), &a, fds);
	} else {
		for (int i = 0; i < LOOK_FDS; i++)
			fd_close(fds[i]);
	}
	look_go_on(l);
}

static void look_on_turn(void *userdata)
{
	static struct log_limit limit = { .burst = 20, .per_s = 1 };
	struct look *l = userdata;

	look_reap_given_up(l);
	queue_on_turn(&l->queue);
	for (struct lane *lane = l->lanes; lane < l->lanes + LOOK_LANES; lane++) {
		if (!lane->ticket || ++lane->turns <= LOOK_ANSWER_NS / LOOK_TURN_NS)
			continue;
		l->counts.given_up++;
		if (log_allowed(&limit, "event=look.no_answer"))
			log_warn("look.no_answer", "pid=%d", lane->ticket->q.pid);
		look_fail(look_give_up(lane), -ETIMEDOUT);
	}
	refuse_some(l);
	look_go_on(l);
}

/* ---- questions ------------------------------------------------------------------------------ */

/* Asks the lane's child. false = there is none and it cannot be started: the question keeps
 * waiting. */
static bool look_ask_child(struct lane *lane, struct look_ticket *t)
{
	if (!lane->child && look_start(lane) < 0)
		return false;
	if (look_send(lane->fd, &t->q, sizeof(t->q), &t->fd, 1, MSG_DONTWAIT) < 0) {
		(void)look_give_up(lane);
		return false;
	}
	t->fd = fd_close(t->fd);
	t->asked = true;
	t->tenant->asked++;
	lane->ticket = t;
	lane->turns = 0;
	lane->asked_mono_ns = clock_mono_ns();
	return true;
}

/* Prefers a lane that already has a child. */
static struct lane *look_idle_lane(struct look *l)
{
	struct lane *idle = NULL;

	for (struct lane *lane = l->lanes; lane < l->lanes + LOOK_LANES; lane++)
		if (!lane->ticket && (!idle || (lane->child && !idle->child)))
			idle = lane;
	return idle;
}

static void look_go_on(struct look *l)
{
	struct look_ticket *t;
	struct lane *lane;

	/* no more children than can be tracked once they are given up */
	while (l->n_given_up <= LOOK_STUCK_ALL - LOOK_LANES && (lane = look_idle_lane(l)) &&
	       (t = queue_next(&l->queue))) {
		if (look_ask_child(lane, t))
			continue;
		queue_put_back(&l->queue, t);
		return; /* retried at the next turn */
	}
}

static bool look_is_slow(const struct look *l, const struct look_tenant *t)
{
	uint64_t now = clock_mono_ns();

	for (const struct lane *lane = l->lanes; lane < l->lanes + LOOK_LANES; lane++)
		if (lane->ticket && lane->ticket->tenant == t &&
		    now - lane->asked_mono_ns > LOOK_SLOW_NS)
			return true;
	return false;
}

/* May the scan ask another question about this tenant? 0, -EAGAIN or -EALREADY, see look_ask(). */
static int look_check_scan(struct look *l, uint64_t tenant)
{
	const struct look_tenant *t = queue_tenant(&l->queue, tenant);

	if (t && t->scans >= LOOK_TENANT_SCAN)
		return look_is_slow(l, t) ? -EALREADY : -EAGAIN;
	return l->queue.n >= LOOK_QUEUE_MAX / 2 ? -EAGAIN : 0;
}

static int look_answer_here(const struct look_question *q, int fd, look_fn *fn, void *userdata)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int taken = fd;
	struct look_answer a = { .number = 0 };
	int fds[LOOK_FDS] = { -1, -1 };

	look_find_out(proc_dfd, q, taken, &a, fds);
	fn(userdata, &a, fds);
	for (int i = 0; i < LOOK_FDS; i++)
		fd_close(fds[i]);
	return 0;
}

int look_ask(struct look *l, const struct look_question *q, uint64_t tenant, int fd, look_fn *fn,
	     void *userdata, struct look_ticket **ret)
{
	struct look_ticket *t;
	int r;

	*ret = NULL;
	if (!l)
		return look_answer_here(q, fd, fn, userdata);
	if (!tenant)
		tenant = look_tenant_of(q->pid);
	r = q->kind == LOOK_JVM ? look_check_scan(l, tenant) : 0;
	if (r < 0)
		fd_close(fd);
	else
		r = queue_put(&l->queue, q, tenant, fd, &t);
	if (r < 0) {
		l->counts.refused += r != -EAGAIN && r != -EALREADY;
		return r;
	}
	t->owner = l;
	t->fn = fn;
	t->userdata = userdata;
	t->q.number = ++l->number;
	*ret = t;
	look_go_on(l);
	return 0;
}

struct look_ticket *look_cancel(struct look_ticket *t)
{
	if (!t)
		return NULL;
	t->fn = NULL;
	if (!t->asked) {
		queue_remove(&t->owner->queue, t);
		ticket_free(t);
	}
	return NULL;
}

void look_counts(const struct look *l, struct look_counts *ret)
{
	*ret = l ? l->counts : (struct look_counts){ 0 };
	if (l)
		ret->stuck = l->n_given_up;
}

/* ---- life cycle ----------------------------------------------------------------------------- */

int look_new(struct loop *loop, const char *program, struct look **ret)
{
	CLEANUP(look_freep) struct look *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->loop = loop;
	snprintf(l->program, sizeof(l->program), "%s", program);
	queue_init(&l->queue);
	for (int i = 0; i < LOOK_LANES; i++) {
		l->lanes[i].owner = l;
		l->lanes[i].fd = -1;
	}
	r = loop_timer_add(loop, LOOK_TURN_NS, LOOK_TURN_NS, look_on_turn, l, &l->timer);
	if (r == 0)
		r = look_start(&l->lanes[0]); /* so that a missing program is reported at once */
	if (r < 0)
		return r;
	*ret = TAKE_PTR(l);
	return 0;
}

struct look *look_free(struct look *l)
{
	if (!l)
		return NULL;
	for (int i = 0; i < LOOK_LANES; i++) {
		struct look_ticket *t = look_give_up(&l->lanes[i]);

		if (t)
			ticket_free(t);
	}
	look_reap_given_up(l);
	loop_timer_free(l->timer);
	queue_free(&l->queue);
	free(l);
	return NULL;
}
