/* See exec_events.h. */
#include "daemon/bpf/exec_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <sys/epoll.h>
#include "daemon/bpf/bpf_priv.h"
#include "daemon/bpf/exec.h"
#include "daemon/ground/mem.h"
#include "exec.skel.h"

#define ROUND_RECORDS_MAX 64

struct exec_events {
	struct exec_bpf *bpf;
	struct ring_buffer *ring;
	struct loop_source *source;
	struct loop_timer *quiet; /* for records that wake nobody */
	struct exec_events_ops ops;
	void *userdata;
	unsigned left; /* records that this round may still handle */
};

static int on_record(void *userdata, void *data, size_t size)
{
	struct exec_events *e = userdata;
	const struct exec_record *r = data;

	if (size < sizeof(*r))
		return 0;
	if (r->kind == EXEC_EXEC)
		e->ops.on_exec(e->userdata, (pid_t)r->pid, r->comm, r->mono_ns);
	else
		e->ops.on_exit(e->userdata, (pid_t)r->pid, r->status, r->mono_ns);
	/* after an error libbpf stops, with this record consumed; epoll reports the others again */
	return --e->left ? 0 : -EAGAIN;
}

static void exec_events_read(struct exec_events *e)
{
	e->left = ROUND_RECORDS_MAX;
	(void)ring_buffer__consume(e->ring);
}

static void on_readable(void *userdata, uint32_t events)
{
	struct exec_events *e = userdata;

	(void)events;
	exec_events_read(e);
	loop_timer_set(e->quiet, EXEC_QUIET_NS, 0);
}

static void exec_events_on_quiet(void *userdata)
{
	struct exec_events *e = userdata;

	exec_events_read(e);
	if (!e->left)
		loop_timer_set(e->quiet, 0, 0);
}

static int exec_events_refuse(int error, const char *step, char *why)
{
	return bpf_refuse(error, step, why, EXEC_EVENTS_WHY_MAX);
}

static int exec_events_attach(struct exec_events *e, struct loop *loop, char *why)
{
	int r;

	e->bpf = exec_bpf__open();
	if (!e->bpf)
		return exec_events_refuse(errno, "open BPF program", why);
	r = exec_bpf__load(e->bpf);
	if (r < 0)
		return exec_events_refuse(-r, "load BPF program", why);
	e->ring = ring_buffer__new(bpf_map__fd(e->bpf->maps.ring), on_record, e, NULL);
	if (!e->ring)
		return exec_events_refuse(errno, "map BPF ring", why);
	r = loop_add(loop, ring_buffer__epoll_fd(e->ring), EPOLLIN, on_readable, e, &e->source);
	if (r >= 0)
		r = loop_timer_add(loop, UINT64_MAX, 0, exec_events_on_quiet, e, &e->quiet);
	if (r < 0)
		return exec_events_refuse(-r, "watch BPF ring", why);
	r = exec_bpf__attach(e->bpf);
	return r < 0 ? exec_events_refuse(-r, "attach BPF program", why) : 0;
}

int exec_events_new(struct loop *loop, const struct exec_events_ops *ops, void *userdata,
		    struct exec_events **ret, char *why)
{
	CLEANUP(exec_events_freep) struct exec_events *e = NULL;
	int r;

	if (!bpf_pids_are_ours()) {
		snprintf(why, EXEC_EVENTS_WHY_MAX, "not in the host's pid namespace");
		return -EXDEV;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return exec_events_refuse(ENOMEM, "open BPF program", why);
	e->ops = *ops;
	e->userdata = userdata;
	bpf_log_quietly();
	r = exec_events_attach(e, loop, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

struct exec_events *exec_events_free(struct exec_events *e)
{
	if (!e)
		return NULL;
	loop_source_free(e->source);
	loop_timer_free(e->quiet);
	ring_buffer__free(e->ring);
	exec_bpf__destroy(e->bpf);
	free(e);
	return NULL;
}

uint64_t exec_events_lost(const struct exec_events *e)
{
	return e->bpf->bss->lost;
}
