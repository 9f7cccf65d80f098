/* See overrides.h. The file has one line for each override; a change rewrites it and renames it
 * into place. */
#include "daemon/target/overrides.h"

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

static struct override *overrides_find_entry(const struct overrides *w, pid_t pid,
					     uint64_t start_time)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->list[i].pid == pid && w->list[i].start_time == start_time)
			return &w->list[i];
	return NULL;
}

static int overrides_append(struct overrides *w, const struct override *override)
{
	struct override *more;

	if (w->n >= OVERRIDES_MAX)
		return -ENOSPC;
	more = realloc(w->list, (w->n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->list = more;
	w->list[w->n++] = *override;
	return 0;
}

static void overrides_read_file(struct overrides *w)
{
	FILE *f = fopen(w->path, "re");
	char line[256];

	if (!f && errno != ENOENT)
		log_warn("target.overrides", "file=%s error=%s", w->path, log_str(strerror(errno)));
	while (f && fgets(line, sizeof(line), f)) {
		char boot[40], word[8];
		struct override override = { 0 };

		if (sscanf(line, LINE, boot, &override.pid, &override.start_time, word,
			   &override.uid, &override.real_s, &override.rules_hash) != 7)
			continue;
		override.attach = strcmp(word, "attach") == 0;
		if (override.pid > 0 && strcmp(boot, w->boot_id) == 0 &&
		    proc_lives(override.pid, override.start_time))
			(void)overrides_append(w, &override);
	}
	if (f)
		fclose(f);
}

static int overrides_write_file(const struct overrides *w)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	for (unsigned i = 0; i < w->n; i++) {
		const struct override *x = &w->list[i];

		fprintf(f, "%s %d %" PRIu64 " %s %u %" PRIu64 " %" PRIx64 "\n", w->boot_id, x->pid,
			x->start_time, x->attach ? "attach" : "detach", x->uid, x->real_s,
			x->rules_hash);
	}
	return fclose(f) != 0 ? -ENOMEM : replace_path(w->path, 0666, true, text, len);
}

static void overrides_save(const struct overrides *w)
{
	int r = w->path[0] ? overrides_write_file(w) : 0;

	if (r < 0)
		log_warn("target.overrides", "file=%s error=%s", w->path, log_str(strerror(-r)));
}

void overrides_open(struct overrides *w, const char *dir)
{
	*w = (struct overrides){ 0 };
	if (!*dir)
		return;
	snprintf(w->path, sizeof(w->path), "%s/wishes", dir);
	proc_boot_id(w->boot_id);
	overrides_read_file(w);
}

void overrides_close(struct overrides *w)
{
	free(w->list);
	w->list = NULL;
	w->n = 0;
}

const struct override *overrides_find(const struct overrides *w, pid_t pid, uint64_t start_time)
{
	return overrides_find_entry(w, pid, start_time);
}

int overrides_put(struct overrides *w, const struct override *override)
{
	struct override *old = overrides_find_entry(w, override->pid, override->start_time);
	int r = 0;

	if (old)
		*old = *override;
	else
		r = overrides_append(w, override);
	if (r == 0)
		overrides_save(w);
	return r;
}

void overrides_remove(struct overrides *w, pid_t pid, uint64_t start_time)
{
	struct override *old = overrides_find_entry(w, pid, start_time);

	if (!old)
		return;
	*old = w->list[--w->n];
	overrides_save(w);
}

void overrides_explain(const struct override *override, struct fault *ret)
{
	time_t s = (time_t) override->real_s;
	struct tm tm = { 0 };
	char when[32];

	gmtime_r(&s, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	*ret = (struct fault){ .flags = FAULT_PERMANENT };
	fault_set(ret, ECANCELED, FAULT_WISH,
		  "detached by uid %u at %s; `kindling attach %d` profiles it again", override->uid,
		  when, override->pid);
}
