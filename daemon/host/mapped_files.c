/*
 * Connects symbols and look: kindling-look finds the files that processes map, because finding them
 * may block. The daemon gets descriptors that only name them (O_PATH).
 */
#include "daemon/host/host_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/tenant.h"
#include "daemon/discovery/look.h"

struct host_question {
	struct host_question *next;
	struct host *host;
	uint64_t ticket; /* of struct symbols */
	struct look_ticket *asked;
};

static void question_free(struct host_question *q)
{
	struct host_question **at = &q->host->questions;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	free(q);
}

static void mapped_files_on_found(void *userdata, const struct look_answer *a, int fds[LOOK_FDS])
{
	struct host_question *q = userdata;
	struct symbols *s = q->host->symbols;
	uint64_t ticket = q->ticket;

	question_free(q);
	symbols_opened(s, ticket, a->result, TAKE_FD(fds[0]), TAKE_FD(fds[1]), &a->file,
		       a->result == -ETIMEDOUT ? LOOK_ANSWER_NS : a->took_ns);
}

static int mapped_files_ask(void *userdata, uint64_t ticket, const struct symbols_process *p,
			    uint64_t begin, uint64_t end, const char *path)
{
	struct look_question question = { .kind = LOOK_MAPPED,
					  .pid = p->pid,
					  .start_time = p->start_time,
					  .mapped = { .begin = begin, .end = end } };
	struct host *h = userdata;
	struct host_question *q = calloc(1, sizeof(*q));
	int r;

	if (!q)
		return -ENOMEM;
	snprintf(question.mapped.path, sizeof(question.mapped.path), "%s", path);
	*q = (struct host_question){ h->questions, h, ticket, NULL };
	h->questions = q;
	r = look_ask(h->look, &question, tenant_number(p->tenant), -1, mapped_files_on_found, q,
		     &q->asked);
	if (r < 0)
		question_free(q);
	return r == -ENOSPC ? -EAGAIN : r;
}

static void mapped_files_cancel(void *userdata, uint64_t ticket)
{
	struct host *h = userdata;

	for (struct host_question *q = h->questions; q; q = q->next)
		if (q->ticket == ticket) {
			look_cancel(q->asked);
			question_free(q);
			return;
		}
}

const struct symbols_opener host_opener = { mapped_files_ask, mapped_files_cancel };
