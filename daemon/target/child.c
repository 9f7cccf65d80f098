/*
 * Child processes: injectors and receivers. The daemon never waits for one, because even a killed
 * child may hang in a file system of the target; its pidfd reports the end as an event of the loop.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include "daemon/core/warden.h"
#include "daemon/ground/log.h"
#include "injector/result.h"

struct child {
	struct targets *table;
	struct child *next;
	pid_t pid;
	int pidfd;
	struct loop_source *source;
	bool owned; /* its owner will call child_kill(): it is kept until then */
	bool ended; /* it has been waited for */
	struct child **seen; /* set to NULL at its end; NULL = nobody wants to know */
	pid_t target; /* the process that it cleans up; 0 = it does something else */
	uint64_t target_start_time;
	struct tenant *payer; /* NULL = its CPU time is nobody's; a reference */
};

static void child_free(struct child *c)
{
	struct child **link;

	for (link = &c->table->children; *link && *link != c; link = &(*link)->next)
		;
	if (*link)
		*link = c->next;
	if (c->seen)
		*c->seen = NULL;
	loop_source_free(c->source);
	fd_close(c->pidfd);
	tenant_unref(&c->table->tenants, c->payer);
	free(c);
}

static void child_on_end(void *userdata, uint32_t events)
{
	struct child *c = userdata;
	uint64_t cpu_ns = 0;
	int status = 0, r;

	(void)events;
	r = warden_reap(c->pid, &status, &cpu_ns);
	if (r == 0)
		return;
	if (c->payer && r > 0)
		c->payer->attempts_cpu_ns -= (int64_t)cpu_ns;
	if (c->target && WIFEXITED(status) && WEXITSTATUS(status) == INJECT_STATUS_LEFT)
		left_report(c->table, c->target, c->target_start_time);
	/* the end may be noticed before the answer, in the same round of the loop */
	c->ended = true;
	c->source = loop_source_free(c->source);
	if (!c->owned)
		child_free(c);
}

int child_start(struct targets *table, char *const argv[], const int fds[3], struct child **ret)
{
	const struct warden_fd numbered[] = { { fds[0], 0 }, { fds[1], 3 }, { fds[2], 4 } };
	struct child *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->table = table;
	r = warden_start(WARDEN_INJECTOR, argv, numbered, ARRAY_SIZE(numbered), &c->pid, &c->pidfd);
	if (r < 0) {
		free(c);
		return r;
	}
	c->next = table->children;
	table->children = c;
	r = loop_add(table->loop, c->pidfd, EPOLLIN, child_on_end, c, &c->source);
	if (r < 0) {
		warden_kill(c->pid);
		(void)warden_reap(c->pid, NULL, NULL);
		child_free(c);
		return r;
	}
	c->owned = ret;
	if (ret)
		*ret = c;
	return 0;
}

void child_cleans(struct child *c, const struct target *t)
{
	c->target = t->jvm.pid;
	c->target_start_time = t->jvm.start_time;
}

void child_charge(struct child *c, struct tenant *tenant)
{
	tenant->refs++;
	c->payer = tenant;
}

void child_let_go(struct child *c)
{
	c->owned = false;
	if (c->ended)
		child_free(c);
}

void child_kill(struct child *c)
{
	c->owned = false;
	if (c->ended)
		child_free(c);
	else
		warden_kill(c->pid);
}

void child_kill_and_see(struct child *c, struct child **seen)
{
	if (*seen)
		(*seen)->seen = NULL;
	*seen = NULL;
	if (!c->ended) {
		*seen = c;
		c->seen = seen;
	}
	child_kill(c);
}

void child_let_go_and_see(struct child *c, struct child **seen)
{
	child_unsee(seen);
	if (!c->ended) {
		*seen = c;
		c->seen = seen;
	}
	child_let_go(c);
}

void child_unsee(struct child **seen)
{
	if (*seen)
		(*seen)->seen = NULL;
	*seen = NULL;
}

void children_forget(struct targets *table)
{
	while (table->children) {
		(void)warden_reap(table->children->pid, NULL, NULL);
		child_free(table->children);
	}
}
