/* One attempt to attach: runs kindling-inject, reads its result, and enforces its deadline. */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "daemon/ground/clock.h"
#include "injector/result.h"

#define STOPPING_NS (20 * NS_PER_MS)
#define CLEANING_NS (15 * NS_PER_S)
#define KILL_NS	    (5 * NS_PER_S) /* the injector is killed this time after its own deadline */

/*
 * The target process has ended. Its injector notices that as well, and removes the files that it
 * has placed through its open descriptors. It must not be killed before that: no other process can
 * reach the target's root or working directory any more.
 */
void target_inject_let_go(struct target *t)
{
	struct target_priv *p = t->priv;

	p->result_source = loop_source_free(p->result_source);
	p->result_fd = fd_close(p->result_fd);
	if (p->injector) {
		child_let_go(p->injector);
		p->injector = NULL;
		turns_end(t);
	}
}

/* Ends the attempt's child, which has answered, has died, or is late. */
static void inject_end_child(struct target *t)
{
	struct target_priv *p = t->priv;

	p->result_source = loop_source_free(p->result_source);
	p->result_fd = fd_close(p->result_fd);
	p->timer = loop_timer_free(p->timer);
	if (p->injector) {
		child_kill_and_see(p->injector, &p->late);
		p->late_mono_ns = clock_mono_ns() + STUCK_NS;
		p->injector = NULL;
		turns_end(t);
	}
}

/* A killed injector may have left files in the target: starts another one, which removes them. */
void target_clean_up(struct target *t)
{
	struct child *child = NULL;
	char pid[16], start[24];
	char *argv[] = { WORD(t->priv->table->config->injector),
			 WORD("--result-fd"),
			 WORD("3"),
			 pid,
			 start,
			 WORD("cleanup"),
			 NULL };

	snprintf(pid, sizeof(pid), "%d", t->jvm.pid);
	snprintf(start, sizeof(start), "%llu", (unsigned long long)t->jvm.start_time);
	if (child_start(t->priv->table, argv, (int[3]){ -1, -1, -1 }, &child) < 0)
		return;
	child_cleans(child, t);
	child_charge(child, t->priv->tenant);
	if (t->priv->late) { /* an injector that is still late is already waited for */
		child_let_go(child);
		return;
	}
	child_let_go_and_see(child, &t->priv->late);
	t->priv->late_mono_ns = clock_mono_ns() + CLEANING_NS;
}

void target_inject_abort(struct target *t)
{
	if (!t->priv->injector)
		return;
	inject_end_child(t);
	receiver_stop(t);
	target_clean_up(t);
}

static void inject_on_backoff(void *userdata)
{
	struct target *t = userdata;

	t->priv->timer = loop_timer_free(t->priv->timer);
	target_begin(t);
}

static void inject_back_off(struct target *t, uint64_t wait_ns)
{
	t->retry_mono_ns = clock_mono_ns() + wait_ns;
	(void)loop_timer_add(t->priv->table->loop, wait_ns, 0, inject_on_backoff, t,
			     &t->priv->timer);
}

void target_fail(struct target *t, const struct fault *why)
{
	uint64_t wait_ns = target_backoff_ns(t->attempts, why);

	target_set_state(t, TARGET_FAILED, why);
	if (wait_ns && t->state == TARGET_FAILED && !t->priv->timer)
		inject_back_off(t, wait_ns);
}

void target_begin_on_facts(struct target *t, int result)
{
	struct fault f = { 0 };

	if (t->priv->leave) {
		session_leave_idle(t);
		return;
	}
	if (result < 0 && result != -ESRCH) { /* if the process has ended, the attempt finds out */
		facts_explain(result, &f);
		target_busy(t, &f);
		return;
	}
	if (!target_admit(t))
		return;
	if (receiver_allowed(t) < 0) {
		fault_set(&f, EBUSY, FAULT_STREAM,
			  "a pipe or file of this %s does not answer: its reader waits for it",
			  t->priv->stuck || t->priv->late ? "JVM" : "container");
		target_busy(t, &f);
		return;
	}
	/* a receiver that was just killed has the agent's pipe open for another moment, which looks
	 * like another daemon's */
	if (t->priv->stuck && t->priv->facts.has_agent)
		inject_back_off(t, STOPPING_NS);
	else if (session_look(t) == 0)
		target_inject(t);
}

void target_begin(struct target *t)
{
	if (t->priv->looking)
		return;
	t->priv->leave = false;
	facts_ask(t, FACTS_FOR_ATTEMPT);
}

void target_no_agent(struct target *t)
{
	target_inject(t);
}

void target_busy(struct target *t, const struct fault *why)
{
	t->attempts++;
	if (t->state == TARGET_FAILED) { /* no change of state, so nothing is logged */
		t->fault = *why;
		inject_back_off(t, target_backoff_ns(t->attempts, why));
	} else {
		target_fail(t, why);
	}
}

/* From INJECTING to FAILED, or to the state that target_leave() asked for meanwhile. */
static void inject_end_attempt(struct target *t, const struct fault *why)
{
	receiver_stop(t);
	/* these steps send nothing to the JVM: the attempt does not count */
	if (why->step == FAULT_PREFLIGHT || why->step == FAULT_IDENTITY) {
		if (t->priv->counted)
			budget_give_back(&t->priv->table->budget);
		t->priv->facts.has_agent = false;
	}
	if (t->priv->leave)
		target_set_state(t, t->priv->leave_to,
				 t->priv->leave_why.code ? &t->priv->leave_why : why);
	else
		target_fail(t, why);
}

static void inject_on_result(void *userdata, uint32_t events)
{
	struct target *t = userdata;
	struct inject_result result = { 0 };
	bool died;

	(void)events;
	/* the injector sends one message; if it died there is none */
	died = recv(t->priv->result_fd, &result, sizeof(result), MSG_DONTWAIT) !=
	       (ssize_t)sizeof(result);
	result.fault.what[sizeof(result.fault.what) - 1] = '\0';
	if (died)
		fault_set(&result.fault, EPROTO, FAULT_INTERNAL,
			  "the program that attaches (kindling-inject) died without an answer");
	inject_end_child(t);
	if (died)
		target_clean_up(t);
	if (result.left)
		left_report(t->priv->table, t->jvm.pid, t->jvm.start_time);
	if (result.fault.code) {
		inject_end_attempt(t, &result.fault);
	} else {
		t->placement = result.strategy;
		session_open(t);
		exit_find_cwd(t);
		target_set_state(t, TARGET_STREAMING, NULL);
		settings_follow(t);
		if (t->priv->leave)
			target_leave(t, t->priv->leave_to, &t->priv->leave_why);
	}
	targets_inject_next(t->priv->table);
}

static void inject_on_deadline(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	fault_set(&f, ETIMEDOUT, FAULT_DEADLINE,
		  "the attach did not end in time (attach.deadline)");
	target_inject_abort(t);
	inject_end_attempt(t, &f);
	targets_inject_next(t->priv->table);
}

static int inject_spawn(struct target *t, int start_fd, int result_fd, int pipes_fd)
{
	const struct config *c = t->priv->table->config;
	char pid[16], start[24], deadline[40], pipe_bytes[40];
	char *argv[] = {
		WORD(c->injector),
		WORD("--result-fd"),
		WORD("3"),
		pid,
		start,
		WORD("attach"),
		WORD(c->agent),
		deadline,
		pipe_bytes,
		WORD("pipes_fd=4"),
		NULL,
		NULL,
		NULL,
	};
	size_t n = ARRAY_SIZE(argv) - 3;
	int r;

	if (!c->quiet_attach)
		argv[n++] = WORD("quiet=0");
	if (c->tmpfs_over_tmp)
		argv[n++] = WORD("over_tmp=1");

	snprintf(pid, sizeof(pid), "%d", t->jvm.pid);
	snprintf(start, sizeof(start), "%llu", (unsigned long long)t->jvm.start_time);
	snprintf(deadline, sizeof(deadline), "deadline_ms=%llu",
		 (unsigned long long)(c->attach_deadline_ns / NS_PER_MS));
	snprintf(pipe_bytes, sizeof(pipe_bytes), "pipe=%llu", (unsigned long long)c->pipe_bytes);
	r = child_start(t->priv->table, argv, (int[3]){ start_fd, result_fd, pipes_fd },
			&t->priv->injector);
	if (r == 0)
		child_charge(t->priv->injector, t->priv->tenant);
	return r;
}

static int inject_start_child(struct target *t, struct fault *f)
{
	struct targets *table = t->priv->table;
	CLEANUP(fd_closep) int theirs = -1, start_fd = -1, give_fd = -1, take_fd = -1;
	uint8_t frame[WIRE_FRAME_MAX];
	int pair[2], start[2], pipes[2], len, r;

	t->priv->session = 0; /* each attempt begins a new session */
	r = secrets_make(&table->secrets, t->jvm.pid, t->jvm.start_time, t->priv->secret);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "make a secret: ");
	len = session_frame(t, frame, table->config->cpu_interval_ns, false);
	if (pipe2(start, O_CLOEXEC) < 0)
		return fault_set(f, errno, FAULT_INTERNAL, "make a pipe: ");
	start_fd = start[0];
	r = write(start[1], frame, (size_t)len) == len ? 0 : -EIO;
	close(start[1]);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "make a socket: ");
	t->priv->result_fd = pair[0];
	theirs = pair[1];
	/* the injector sends the pipes straight to the receiver, so the daemon never holds a
	 * descriptor of one */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pipes) < 0)
		return fault_set(f, errno, FAULT_INTERNAL, "make a socket: ");
	give_fd = pipes[0];
	take_fd = pipes[1];
	r = receiver_start(t, take_fd);
	if (r == 0)
		r = inject_spawn(t, start_fd, theirs, give_fd);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "start %s: ", table->config->injector);
	turns_begin(t);
	r = loop_add(table->loop, pair[0], EPOLLIN, inject_on_result, t, &t->priv->result_source);
	/* the injector's own deadline ends first, so that it can clean up */
	if (r == 0)
		r = loop_timer_add(table->loop, table->config->attach_deadline_ns + KILL_NS, 0,
				   inject_on_deadline, t, &t->priv->timer);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL,
				 "cannot wait for the program that attaches (kindling-inject): ")
		     : 0;
}

static void inject_begin_attempt(struct target *t)
{
	struct targets *table = t->priv->table;
	struct fault f = { 0 };

	t->priv->counted = !turns_is_former(t);
	if (t->priv->counted)
		budget_begin(&table->budget, clock_mono_ns());
	exit_watch(t);
	t->attempts++;
	t->priv->queued = t->priv->leave = t->priv->resend_start = false;
	t->priv->left_looks = 0;
	/* from now on there may be an agent, whatever the result says */
	t->priv->facts.has_agent = true;
	target_set_state(t, TARGET_INJECTING, NULL);
	if (inject_start_child(t, &f) < 0) {
		target_inject_abort(t);
		inject_end_child(t);
		inject_end_attempt(t, &f);
	}
}

void target_inject(struct target *t)
{
	t->priv->queued = true;
	if (t->priv->table->filters.awaited && t->state == TARGET_FOUND)
		await_filters_explain(t->priv->table, &t->fault);
	targets_inject_next(t->priv->table);
}

void targets_inject_next(struct targets *table)
{
	struct target *t;
	uint64_t wait_ns;

	while (!table->filters.awaited && (t = turns_next(table))) {
		wait_ns =
			budget_wait_ns(&table->budget, table->config->attach_rate, clock_mono_ns());
		if (wait_ns && !turns_is_former(t)) {
			loop_timer_set(table->rate_timer, wait_ns, 0);
			return;
		}
		inject_begin_attempt(t);
	}
}
