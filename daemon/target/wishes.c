/* See wishes.h. The file is one line a wish; it is written anew, and renamed, when one changes. */
#include "daemon/target/wishes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/replace.h"

#define LINE "%39s %d %" SCNu64 " %7s %u %" SCNu64 " %" SCNx64

static struct wish *wishes_find_entry(const struct wishes *w, pid_t pid, uint64_t start_time)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->list[i].pid == pid && w->list[i].start_time == start_time)
			return &w->list[i];
	return NULL;
}

static int wishes_append(struct wishes *w, const struct wish *wish)
{
	struct wish *more;

	if (w->n >= WISHES_MAX)
		return -ENOSPC;
	more = realloc(w->list, (w->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->list = more;
	w->list[w->n++] = *wish;
	return 0;
}

static void wishes_read_file(struct wishes *w)
{
	FILE *f = fopen(w->path, "re");
	char line[256];

	if (!f && errno != ENOENT)
		log_warn("target.wishes", "file=%s error=%s", w->path, log_str(strerror(errno)));
	while (f && fgets(line, sizeof(line), f)) {
		char boot[40], word[8];
		struct wish wish = { 0 };

		if (sscanf(line, LINE, boot, &wish.pid, &wish.start_time, word, &wish.uid,
			   &wish.real_s, &wish.rules_hash) != 7)
			continue;
		wish.attach = strcmp(word, "attach") == 0;
		if (wish.pid > 0 && strcmp(boot, w->boot_id) == 0 &&
		    proc_lives(wish.pid, wish.start_time))
			(void)wishes_append(w, &wish);
	}
	if (f)
		fclose(f);
}

static int wishes_write_file(const struct wishes *w)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	for (unsigned i = 0; i < w->n; i++) {
		const struct wish *x = &w->list[i];

		fprintf(f, "%s %d %" PRIu64 " %s %u %" PRIu64 " %" PRIx64 "\n", w->boot_id, x->pid,
			x->start_time, x->attach ? "attach" : "detach", x->uid, x->real_s,
			x->rules_hash);
	}
	return fclose(f) != 0 ? -ENOMEM : replace_path(w->path, 0666, true, text, len);
}

static void wishes_save(const struct wishes *w)
{
	int r = w->path[0] ? wishes_write_file(w) : 0;

	if (r < 0)
		log_warn("target.wishes", "file=%s error=%s", w->path, log_str(strerror(-r)));
}

void wishes_open(struct wishes *w, const char *dir)
{
	*w = (struct wishes){ 0 };
	if (!*dir)
		return;
	snprintf(w->path, sizeof(w->path), "%s/wishes", dir);
	proc_boot_id(w->boot_id);
	wishes_read_file(w);
}

void wishes_close(struct wishes *w)
{
	free(w->list);
	w->list = NULL;
	w->n = 0;
}

const struct wish *wishes_find(const struct wishes *w, pid_t pid, uint64_t start_time)
{
	return wishes_find_entry(w, pid, start_time);
}

int wishes_put(struct wishes *w, const struct wish *wish)
{
	struct wish *old = wishes_find_entry(w, wish->pid, wish->start_time);
	int r = 0;

	if (old)
		*old = *wish;
	else
		r = wishes_append(w, wish);
	if (r == 0)
		wishes_save(w);
	return r;
}

void wishes_remove(struct wishes *w, pid_t pid, uint64_t start_time)
{
	struct wish *old = wishes_find_entry(w, pid, start_time);

	if (!old)
		return;
	*old = w->list[--w->n];
	wishes_save(w);
}

void wishes_explain(const struct wish *wish, struct fault *ret)
{
	time_t s = (time_t)wish->real_s;
	struct tm tm = { 0 };
	char when[32];

	gmtime_r(&s, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	*ret = (struct fault){ .flags = FAULT_PERMANENT };
	fault_set(ret, ECANCELED, FAULT_WISH,
		  "detached by uid %u at %s; `kindling attach %d` profiles it again", wish->uid,
		  when, wish->pid);
}
