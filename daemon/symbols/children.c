/*
 * The child processes that read files. Each tenant has one child at a time, tenants take turns, and
 * each has a budget of CPU time that refills slowly: so a tenant delays only itself. Nobody waits
 * for a child that does not end although it was killed: it keeps its own tenant's turn.
 */
#include "daemon/symbols/symbols_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include "daemon/core/warden.h"
#include "daemon/ground/beside.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

#define READING_MAX 2
#define DEADLINE_NS (30 * NS_PER_S)
#define CPU_NS_MAX  ((int64_t)(10 * NS_PER_S)) /* a tenant's full budget */
#define CPU_SHARE   100 /* it refills by the hundredth part of the time: 1 % of a CPU */

struct child {
	struct child *next;
	struct symbols *owner;
	struct tenant *tenant;
	struct content *content; /* NULL = it was killed, and nobody waits for it */
	pid_t pid;
	int pidfd, out_fd;
	struct loop_source *source;
	struct loop_timer *deadline;
};

/* ---- budgets --------------------------------------------------------------------------------- */

void tenant_refill(struct tenant *t, uint64_t now)
{
	if (!t->filled_mono_ns)
		t->cpu_ns = CPU_NS_MAX;
	else
		t->cpu_ns += (int64_t)((now - t->filled_mono_ns) / CPU_SHARE);
	if (t->cpu_ns > CPU_NS_MAX)
		t->cpu_ns = CPU_NS_MAX;
	t->filled_mono_ns = now;
}

bool tenant_is_full(const struct tenant *t)
{
	return t->cpu_ns >= CPU_NS_MAX;
}

/* ---- end of a child -------------------------------------------------------------------------- */

static void temp_name(const struct content *c, char *buf, size_t size)
{
	snprintf(buf, size, ".%s.tmp", c->key);
}

/* The content gets its table, or never will; the child itself may still exist. */
static void children_finish(struct child *c, bool ok)
{
	struct symbols *s = c->owner;
	struct content *content = TAKE_PTR(c->content);
	char temp[KEY_SIZE + 8];

	if (!content)
		return;
	s->reading--;
	c->deadline = loop_timer_free(c->deadline);
	temp_name(content, temp, sizeof(temp));
	content->child = NULL;
	content->state = NONE;
	if (!ok || !content_read(content, c->out_fd, temp)) {
		s->counts.failed++;
		(void)unlinkat(s->dfd, temp, 0);
	}
	log_debug("symbols.read", "key=%s functions=%u", content->key,
		  content->names ? content->names->table.n_entries : 0);
}

static void children_child_free(struct child *c)
{
	struct child **at = &c->owner->children;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->tenant->reading = false;
	loop_source_free(c->source);
	loop_timer_free(c->deadline);
	fd_close(c->pidfd);
	fd_close(c->out_fd);
	free(c);
}

static void children_on_end(void *userdata, uint32_t events)
{
	struct child *c = userdata;
	struct symbols *s = c->owner;
	uint64_t cpu_ns;
	int status = 0, r = warden_reap(c->pid, &status, &cpu_ns);

	(void)events;
	if (r == 0)
		return;
	c->tenant->cpu_ns -= (int64_t)cpu_ns;
	children_finish(c, r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	children_child_free(c);
	children_start(s);
}

static void children_on_deadline(void *userdata)
{
	struct child *c = userdata;

	warden_kill(c->pid);
	children_finish(c, false);
	children_start(c->owner);
}

void child_abandon(struct child *c)
{
	warden_kill(c->pid);
	children_finish(c, false);
}

void children_free(struct symbols *s)
{
	while (s->children) {
		struct child *c = s->children;

		child_abandon(c);
		(void)warden_reap(c->pid, NULL,
				  NULL); /* else init reaps it after the daemon's end */
		children_child_free(c);
	}
}

/* ---- start of a child ------------------------------------------------------------------------ */

const char *symbols_program;

void children_find_program(struct symbols *s)
{
	if (symbols_program)
		snprintf(s->program, sizeof(s->program), "%s", symbols_program);
	else if (!beside_find_program(s->program, sizeof(s->program), "kindling-symbols"))
		log_warn(
			"symbols.program",
			"error=\"kindling-symbols is neither beside kindlingd nor in ../bin: no native names\"");
}

static int children_spawn(struct child *child, struct content *c)
{
	char *argv[] = { c->owner->program, c->path, NULL };
	const struct warden_fd fds[] = { { c->file_fd, 0 },
					 { child->out_fd, 1 },
					 { c->root_fd, ROOT_FD },
					 { c->owner->host_root_fd, HOST_FD } };

	return warden_start(WARDEN_SYMBOLS, argv, fds, ARRAY_SIZE(fds), &child->pid, &child->pidfd);
}

static int open_temp(struct content *c)
{
	char temp[KEY_SIZE + 8];
	int fd;

	temp_name(c, temp, sizeof(temp));
	(void)unlinkat(c->owner->dfd, temp, 0);
	fd = openat(c->owner->dfd, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	return fd < 0 ? -errno : fd;
}

/* Starts a child for a content, whose state then is READING, or NONE after an error. */
static void children_start_one(struct content *c)
{
	struct symbols *s = c->owner;
	struct child *child = calloc(1, sizeof(*child));
	bool ok;

	s->waiting--;
	c->tenant->waiting--;
	c->state = NONE;
	c->tenant->started_mono_ns = clock_mono_ns();
	if (!child)
		return;
	*child = (struct child){ s->children, s, c->tenant, c, 0, -1, open_temp(c), NULL, NULL };
	s->children = child;
	s->reading++;
	if (child->out_fd < 0 || children_spawn(child, c) < 0) {
		children_finish(child, false);
		children_child_free(child);
		return;
	}
	c->state = READING;
	c->child = child;
	c->tenant->reading = true;
	ok = loop_add(s->loop, child->pidfd, EPOLLIN, children_on_end, child, &child->source) ==
		     0 &&
	     loop_timer_add(s->loop, DEADLINE_NS, 0, children_on_deadline, child,
			    &child->deadline) == 0;
	if (ok)
		return;
	child_abandon(child);
	(void)warden_reap(child->pid, NULL, NULL);
	children_child_free(child);
}

/* The tenant that has waited longest among those that may start a child. */
static struct tenant *children_next_tenant(struct symbols *s)
{
	uint64_t now = clock_mono_ns();
	struct tenant *next = NULL;

	for (struct tenant *t = s->tenants; t; t = t->next) {
		tenant_refill(t, now);
		if (t->waiting && !t->reading && t->cpu_ns > 0 &&
		    (!next || t->started_mono_ns < next->started_mono_ns))
			next = t;
	}
	return next;
}

static struct content *waiting_of(struct symbols *s, const struct tenant *t)
{
	for (unsigned i = 0; i < CONTENT_BUCKETS; i++)
		for (struct content *c = s->contents[i]; c; c = c->next)
			if (c->tenant == t && c->state == WANTED && c->file_fd >= 0)
				return c;
	return NULL;
}

void children_start(struct symbols *s)
{
	struct tenant *t;

	while (s->waiting && s->reading < READING_MAX && (t = children_next_tenant(s))) {
		struct content *c = waiting_of(s, t);

		if (!c)
			return;
		children_start_one(c);
		content_forget_input(c);
	}
}
