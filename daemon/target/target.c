/* The table of targets: adding one, the end of its process, and iteration. */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/proc.h"

static void target_on_second(void *userdata)
{
	receivers_on_second(userdata);
	decoding_on_second(userdata);
	gathering_on_second(userdata);
	targets_inject_next(userdata); /* attempts of a tenant may have CPU time again */
}

int targets_new(struct loop *loop, const struct config *config, const struct targets_ops *ops,
		void *userdata, struct targets **ret)
{
	struct targets *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->loop = loop;
	t->config = config;
	t->rules_fd = -1;
	t->bound = TARGETS_MAX;
	t->decoded_mono_ns = clock_mono_ns();
	t->ops = *ops;
	session_stream_ops(ops, &t->stream_ops);
	t->userdata = userdata;
	left_begin(t);
	overrides_open(&t->overrides, config->state_dir);
	crashes_open(&t->crashes, config->state_dir, clock_real_ns());
	secrets_open(&t->secrets, config->state_dir);
	r = loop_timer_add(loop, UINT64_MAX, 0, targets_on_rate, t, &t->rate_timer);
	if (r == 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, targets_on_review, t, &t->review_timer);
	if (r == 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, targets_on_left, t, &t->left_timer);
	if (r == 0)
		r = loop_timer_add(loop, NS_PER_S, NS_PER_S, target_on_second, t, &t->second_timer);
	if (r < 0) {
		targets_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void targets_no_offcpu(struct targets *t)
{
	t->no_offcpu = true;
}

void targets_own_signal(struct targets *t)
{
	t->own_signal = true;
}

void targets_look(struct targets *t, struct look *look)
{
	t->look = look;
}

/* Releases everything but the target's identity: its row in `status --all` remains. */
static void target_release(struct target *t)
{
	struct targets *table = t->priv->table;

	target_inject_abort(t);
	facts_cancel(t);
	session_close(t); /* frees its timer */
	t->priv->profilers_timer = loop_timer_free(t->priv->profilers_timer);
	if (table->ops.on_free && !t->priv->remembered)
		table->ops.on_free(table->userdata, t);
	t->priv->pidfd_source = loop_source_free(t->priv->pidfd_source);
	t->priv->pidfd = fd_close(t->priv->pidfd);
	exit_forget(t);
}

static struct target *target_free(struct target *t)
{
	if (!t)
		return NULL;
	if (t->priv)
		tenant_unref(&t->priv->table->tenants, t->priv->tenant);
	free(t->labels);
	free(t->priv);
	free(t);
	return NULL;
}
DEFINE_FREEP(struct target, target_free);

void target_forget(struct target *t)
{
	struct targets *table = t->priv->table;
	struct target **link;

	for (link = &table->first; *link && *link != t; link = &(*link)->priv->next)
		;
	if (*link)
		*link = t->priv->next;
	if (t->priv->remembered) {
		table->remembered--;
	} else {
		table->count--;
		t->priv->tenant->targets--;
	}
	target_release(t);
	child_unsee(&t->priv->stuck);
	child_unsee(&t->priv->late);
	target_free(t);
}

void *targets_userdata(const struct target *t)
{
	return t->priv->table->userdata;
}

struct targets *targets_free(struct targets *table)
{
	if (!table)
		return NULL;
	while (table->first)
		target_forget(table->first);
	children_forget(table);
	loop_timer_free(table->rate_timer);
	loop_timer_free(table->review_timer);
	loop_timer_free(table->left_timer);
	loop_timer_free(table->second_timer);
	loop_timer_free(table->filters.timer);
	overrides_close(&table->overrides);
	crashes_close(&table->crashes);
	secrets_close(&table->secrets);
	fd_close(table->rules_fd);
	free(table);
	return NULL;
}

static void target_on_remembered_long_enough(void *userdata)
{
	target_forget(userdata);
}

static struct target *target_oldest_remembered(struct targets *table)
{
	struct target *t = table->first, *oldest = NULL;

	for (; t; t = t->priv->next)
		if (t->priv->remembered && (!oldest || t->gone_mono_ns < oldest->gone_mono_ns))
			oldest = t;
	return oldest;
}

/* GONE_KEEP_NS have passed, in which clients could read its last data: keeps only its row in
 * `status --all`. */
static void target_remember(struct target *t)
{
	struct targets *table = t->priv->table;

	target_release(t);
	t->priv->remembered = true;
	t->priv->exit_known = true; /* a later status with this pid is another process's */
	table->count--;
	t->priv->tenant->targets--;
	table->remembered++;
	(void)loop_timer_add(table->loop, REMEMBER_NS - GONE_KEEP_NS, 0,
			     target_on_remembered_long_enough, t, &t->priv->timer);
	if (table->remembered > REMEMBER_MAX)
		target_forget(target_oldest_remembered(table));
}

static void target_on_gone_long_enough(void *userdata)
{
	target_remember(userdata);
}

/* If many JVMs end, only the last GONE_KEEP_MAX are kept with all of their data. */
static void target_limit_gone(struct targets *table)
{
	struct target *oldest = NULL;
	unsigned n = 0;

	for (struct target *t = table->first; t; t = t->priv->next) {
		if (t->state != TARGET_GONE || t->priv->remembered)
			continue;
		n++;
		if (!oldest || t->gone_mono_ns < oldest->gone_mono_ns)
			oldest = t;
	}
	if (n > GONE_KEEP_MAX)
		target_remember(oldest);
}

/* The process has ended; its last events may still be in the pipe. */
static void target_on_pidfd(void *userdata, uint32_t events)
{
	struct target *t = userdata;

	(void)events;
	t->priv->pidfd_source = loop_source_free(t->priv->pidfd_source);
	t->priv->pidfd = fd_close(t->priv->pidfd);
	target_inject_let_go(t);
	if (!session_end(t))
		target_end(t);
}

void target_end(struct target *t)
{
	struct fault why;

	facts_cancel(t);
	session_close(t); /* frees the timer, whatever the state was */
	decoding_end(t);
	t->gone_mono_ns = clock_mono_ns();
	exit_explain(t, &why);
	target_set_state(t, TARGET_GONE, why.code ? &why : NULL);
	t->priv->kept = KEEP_NOT;
	overrides_remove(&t->priv->table->overrides, t->jvm.pid, t->jvm.start_time);
	secrets_forget(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
	exit_look(t);
	targets_review_soon(t->priv->table, 0); /* another JVM may get its place */
	(void)loop_timer_add(t->priv->table->loop, GONE_KEEP_NS, 0, target_on_gone_long_enough, t,
			     &t->priv->timer);
	target_limit_gone(t->priv->table);
	targets_inject_next(t->priv->table);
}

static int target_new(struct targets *table, const struct jvm *jvm, struct target **ret)
{
	CLEANUP(target_freep) struct target *t = calloc(1, sizeof(*t));

	if (t)
		t->priv = calloc(1, sizeof(*t->priv));
	if (!t || !t->priv)
		return -ENOMEM;
	t->jvm = *jvm;
	memcpy(t->jdk, jvm->jdk, sizeof(jvm->jdk));
	t->priv->table = table;
	t->priv->pidfd = t->priv->cwd_fd = -1;
	t->priv->result_fd = t->priv->socket_fd = -1;
	t->priv->tenant = tenant_ref(&table->tenants, jvm);
	if (!t->priv->tenant)
		return -ENOMEM;
	if (t->priv->tenant->refs == 1)
		decoding_new_tenant(t);
	*ret = TAKE_PTR(t);
	return 0;
}

static int target_watch(struct target *t)
{
	struct target_priv *p = t->priv;
	int r;

	p->pidfd = (int)syscall(SYS_pidfd_open, t->jvm.pid, 0);
	r = p->pidfd < 0 ? -errno
			 : loop_add(p->table->loop, p->pidfd, EPOLLIN, target_on_pidfd, t,
				    &p->pidfd_source);
	/* the pid may have been reused between discovery's look and pidfd_open() */
	if (r == 0 && !proc_lives(t->jvm.pid, t->jvm.start_time)) {
		p->pidfd_source = loop_source_free(p->pidfd_source);
		r = -ESRCH;
	}
	if (r < 0)
		p->pidfd = fd_close(p->pidfd);
	return r;
}

int targets_add(struct targets *table, const struct jvm *jvm, uint64_t seen_mono_ns,
		struct target **ret)
{
	CLEANUP(target_freep) struct target *new = NULL;
	struct target *t, **link;
	int r;

	for (t = table->first; t; t = t->priv->next)
		if (t->jvm.pid == jvm->pid && t->jvm.start_time == jvm->start_time)
			return -EEXIST;
	r = target_new(table, jvm, &new);
	if (r == 0 && !room_make(table, new->priv->tenant)) {
		table->refused++;
		r = -ENOSPC;
	}
	if (r == 0)
		r = target_watch(new);
	if (r < 0)
		return r;
	t = TAKE_PTR(new);
	t->seen_mono_ns = seen_mono_ns;
	/* appended, because JVMs are attached to in the order in which they were found */
	for (link = &table->first; *link; link = &(*link)->priv->next)
		;
	*link = t;
	table->count++;
	t->priv->tenant->targets++;
	labelling_renew(t);
	TARGET_LOG(INFO, t, "target.found", "pid=%d ns_pid=%d name=%s container=%s", jvm->pid,
		   jvm->ns_pid, log_str(jvm->name), log_str(jvm->container_id));
	target_begin(t);
	left_look(t);
	if (ret)
		*ret = t;
	return 0;
}

void targets_stop(struct targets *table)
{
	table->stopping = true;
	for (struct target *t = table->first; t; t = t->priv->next)
		target_detach(t);
}

struct target *targets_next_known(struct targets *table, const struct target *prev)
{
	return prev ? prev->priv->next : table->first;
}

struct target *targets_next(struct targets *table, const struct target *prev)
{
	struct target *t = targets_next_known(table, prev);

	while (t && t->priv->remembered)
		t = t->priv->next;
	return t;
}

bool targets_quiet(const struct targets *table)
{
	for (const struct target *t = table->first; t; t = t->priv->next)
		if (t->state == TARGET_INJECTING || t->state == TARGET_STREAMING ||
		    t->state == TARGET_DRAINING || t->priv->looking)
			return false;
	return true;
}
