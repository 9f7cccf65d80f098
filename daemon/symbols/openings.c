/*
 * The order in which files are opened. Each tenant has a queue of the files that its processes map,
 * and one file at a time is being opened for it; tenants take turns. After an answer the tenant
 * rests for nineteen times as long as the answer took: so paths that are slow on purpose occupy the
 * opener for a twentieth of the time, while others are opened at hundreds per second.
 */
#include "daemon/symbols/symbols_priv.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/symbols/mapped.h"

#define REST_FACTOR    19u
#define FILE_BYTES_MAX ((off_t)1 << 30)
#define RETRY_NS       (50 * NS_PER_MS) /* before the next try when the opener has no room */

/* ---- the queue ------------------------------------------------------------------------------- */

static void openings_push(struct tenant *t, struct file *f)
{
	f->next_wanted = NULL;
	f->wanted_at = t->wanted_end;
	*t->wanted_end = f;
	t->wanted_end = &f->next_wanted;
}

static void take_out(struct tenant *t, struct file *f)
{
	*f->wanted_at = f->next_wanted;
	if (f->next_wanted)
		f->next_wanted->wanted_at = f->wanted_at;
	else
		t->wanted_end = f->wanted_at;
	f->wanted_at = NULL;
}

static struct opening *opening_of(struct symbols *s, const struct file *f)
{
	for (struct opening *o = s->openings; o < s->openings + OPENINGS_MAX; o++)
		if (o->ticket && o->file == f)
			return o;
	return NULL;
}

static struct opening *free_opening(struct symbols *s)
{
	for (struct opening *o = s->openings; o < s->openings + OPENINGS_MAX; o++)
		if (!o->ticket)
			return o;
	return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Sets the moment from which the tenant's next file may be opened. */
static void openings_rest(struct tenant *t, uint64_t took_ns)
{
	t->opening = false;
	t->open_from_mono_ns = clock_mono_ns() + REST_FACTOR * took_ns;
}

/* The vDSO is this process's own and is opened at once. */
static void open_vdso(struct file *f)
{
	struct tenant *t = f->process->tenant;
	struct stat st;
	int fd = mapped_open_vdso(&st);

	file_opened(f, fd < 0 ? -ENOENT : 0, fd, -1, &st);
	openings_rest(t, clock_mono_ns() - t->asked_mono_ns);
}

/* Asks for the tenant's first file and takes it out of the queue. false = the opener has no room
 * now. */
static bool openings_ask(struct symbols *s, struct opening *o, struct tenant *t)
{
	struct file *f = t->wanted;
	const struct symbols_process p = { f->process->pid, f->process->start_time, t->name };
	int r;

	take_out(t, f);
	t->asked_mono_ns = clock_mono_ns();
	if (strcmp(f->path, MAPPED_VDSO) == 0) {
		open_vdso(f);
		return true;
	}
	*o = (struct opening){ ++s->last_ticket, f, f->begin };
	t->opening = true;
	r = s->opener->ask(s->opener_userdata, o->ticket, &p, f->begin, f->end, f->path);
	if (r == 0)
		return true;
	o->ticket = 0;
	openings_rest(t, clock_mono_ns() - t->asked_mono_ns);
	if (r == -EAGAIN)
		openings_push(t, f); /* to the end of the queue */
	else
		file_opened(f, r, -1, -1, NULL);
	return r != -EAGAIN;
}

/* The tenant that has waited longest; if none may have its turn yet, *ret_from is when the next
 * one may. */
static struct tenant *openings_next_tenant(struct symbols *s, uint64_t now, uint64_t *ret_from)
{
	struct tenant *next = NULL;

	*ret_from = UINT64_MAX;
	for (struct tenant *t = s->tenants; t; t = t->next) {
		if (!t->wanted || t->opening)
			continue;
		if (t->open_from_mono_ns > now) {
			if (t->open_from_mono_ns < *ret_from)
				*ret_from = t->open_from_mono_ns;
		} else if (!next || t->asked_mono_ns < next->asked_mono_ns) {
			next = t;
		}
	}
	return next;
}

static void openings_start(struct symbols *s)
{
	uint64_t now = clock_mono_ns(), from = UINT64_MAX;
	struct opening *o;
	struct tenant *t;

	loop_timer_set(s->open_timer, UINT64_MAX, 0);
	while ((o = free_opening(s)) && (t = openings_next_tenant(s, now, &from)))
		if (!openings_ask(s, o, t)) {
			from = now + RETRY_NS;
			break;
		}
	if (from != UINT64_MAX)
		loop_timer_set(s->open_timer, from - now, 0);
}

static void openings_on_timer(void *userdata)
{
	openings_start(userdata);
}

/* ---- interface ------------------------------------------------------------------------------- */

int openings_init(struct symbols *s)
{
	return loop_timer_add(s->loop, UINT64_MAX, 0, openings_on_timer, s, &s->open_timer);
}

/* Queues @f. The next file is chosen once after a frame, which has many mappings. */
void file_want(struct symbols *s, struct file *f)
{
	struct tenant *t = f->process->tenant;

	if (f->wanted_at || opening_of(s, f))
		return;
	openings_push(t, f);
	if (t->wanted == f && !t->opening)
		loop_timer_set(s->open_timer, 0, 0);
}

void file_unwant(struct symbols *s, struct file *f)
{
	struct tenant *t = f->process->tenant;
	struct opening *o = opening_of(s, f);

	if (f->wanted_at)
		take_out(t, f);
	if (!o)
		return;
	s->opener->cancel(s->opener_userdata, o->ticket);
	o->ticket = 0;
	openings_rest(t, 0);
	loop_timer_set(s->open_timer, 0, 0);
}

void symbols_opened(struct symbols *s, uint64_t ticket, int result, int file_fd, int root_fd,
		    const struct stat *st, uint64_t took_ns)
{
	CLEANUP(fd_closep) int file = file_fd, root = root_fd;
	struct opening *o = s->openings;
	struct file *f;

	while (o < s->openings + OPENINGS_MAX && o->ticket != ticket)
		o++;
	if (!ticket || o == s->openings + OPENINGS_MAX)
		return;
	f = o->file;
	o->ticket = 0;
	openings_rest(f->process->tenant, took_ns);
	if (result == 0 && (!S_ISREG(st->st_mode) || st->st_size > FILE_BYTES_MAX))
		result = -EINVAL;
	if (f->begin != o->begin)
		openings_push(f->process->tenant, f); /* it was mapped again meanwhile */
	else
		file_opened(f, result, TAKE_FD(file), TAKE_FD(root), st);
	loop_timer_set(s->open_timer, 0, 0);
}
