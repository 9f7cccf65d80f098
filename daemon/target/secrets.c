/*
 * See secrets.h. The file has a line for each process, and the last one counts. Each attach appends
 * a line. Nothing is synced, because a crash of the host makes the file useless.
 */
#include "daemon/target/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/replace.h"

#define LINES_MAX 4096 /* lines after which the file is rewritten without ended processes */
#define LINE_MAX  160
#define HEX_BYTES (2 * WIRE_SECRET_BYTES)

static struct secret *secrets_find_entry(const struct secrets *s, pid_t pid, uint64_t start_time)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->list[i].pid == pid && s->list[i].start_time == start_time)
			return &s->list[i];
	return NULL;
}

static struct secret *secrets_find_or_add(struct secrets *s, pid_t pid, uint64_t start_time)
{
	struct secret *found = secrets_find_entry(s, pid, start_time), *more;
	unsigned room = s->room ? 2 * s->room : 64;

	if (found)
		return found;
	if (s->n == s->room) {
		more = realloc(s->list, room * sizeof(*more));
		if (!more)
			return NULL;
		s->list = more;
		s->room = room;
	}
	s->list[s->n] = (struct secret){ .pid = pid, .start_time = start_time };
	return &s->list[s->n++];
}

/* ---- the file: "boot pid start_time secret" ------------------------------------------------- */

static bool secrets_from_hex(const char *hex, uint8_t ret[WIRE_SECRET_BYTES])
{
	if (strlen(hex) != HEX_BYTES)
		return false;
	for (int i = 0; i < WIRE_SECRET_BYTES; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &ret[i]) != 1)
			return false;
	return true;
}

static size_t secrets_to_line(const struct secrets *s, const struct secret *x, char line[LINE_MAX])
{
	int n = snprintf(line, LINE_MAX, "%s %d %" PRIu64 " ", s->boot_id, x->pid, x->start_time);

	for (int i = 0; i < WIRE_SECRET_BYTES; i++)
		n += snprintf(line + n, LINE_MAX - (size_t)n, "%02x", x->bytes[i]);
	n += snprintf(line + n, LINE_MAX - (size_t)n, "\n");
	return (size_t)n;
}

static void secrets_read_line(struct secrets *s, const char *line)
{
	uint8_t bytes[WIRE_SECRET_BYTES];
	char boot[40], hex[HEX_BYTES + 1];
	uint64_t start_time;
	struct secret *x;
	pid_t pid;

	if (sscanf(line, "%39s %d %" SCNu64 " %32s", boot, &pid, &start_time, hex) != 4 ||
	    strcmp(boot, s->boot_id) != 0 || pid <= 0 || !secrets_from_hex(hex, bytes) ||
	    !proc_lives(pid, start_time))
		return;
	x = secrets_find_or_add(s, pid, start_time);
	if (!x)
		return;
	memcpy(x->bytes, bytes, sizeof(bytes));
	x->former = true;
}

static int secrets_open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Rewrites the file with the processes that are alive. */
static int secrets_rewrite(struct secrets *s)
{
	CLEANUP(freep) char *text = malloc(s->n * LINE_MAX + 1);
	size_t len = 0;

	if (!text)
		return -ENOMEM;
	for (unsigned i = 0; i < s->n; i++)
		len += secrets_to_line(s, &s->list[i], text + len);
	s->lines = s->n;
	return replace_path(s->path, 0600, false, text, len);
}

static int secrets_append(struct secrets *s, const struct secret *x)
{
	CLEANUP(fd_closep) int fd = -1;
	char line[LINE_MAX];
	size_t len;

	if (++s->lines > LINES_MAX)
		return secrets_rewrite(s);
	fd = secrets_open_file(s->path, O_WRONLY | O_CREAT | O_APPEND);
	len = secrets_to_line(s, x, line);
	if (fd < 0)
		return fd;
	return write(fd, line, len) == (ssize_t)len ? 0 : -EIO;
}

static void secrets_log_error(const struct secrets *s, int r)
{
	if (r < 0)
		log_warn("target.agents", "file=%s error=%s", s->path, log_str(strerror(-r)));
}

void secrets_open(struct secrets *s, const char *dir)
{
	char line[LINE_MAX];
	FILE *f;

	*s = (struct secrets){ 0 };
	if (!*dir)
		return;
	snprintf(s->path, sizeof(s->path), "%s/agents", dir);
	proc_boot_id(s->boot_id);
	f = fopen(s->path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		secrets_read_line(s, line);
	fclose(f);
	secrets_log_error(s, secrets_rewrite(s));
}

void secrets_close(struct secrets *s)
{
	free(s->list);
	s->list = NULL;
	s->n = s->room = 0;
}

/* ---- secrets -------------------------------------------------------------------------------- */

int secrets_make(struct secrets *s, pid_t pid, uint64_t start_time, uint8_t ret[WIRE_SECRET_BYTES])
{
	struct secret *x = secrets_find_or_add(s, pid, start_time);

	if (!x)
		return -ENOMEM;
	if (getrandom(x->bytes, sizeof(x->bytes), 0) != (ssize_t)sizeof(x->bytes)) {
		secrets_forget(s, pid, start_time);
		return -EIO;
	}
	memcpy(ret, x->bytes, sizeof(x->bytes));
	x->former = false;
	if (s->path[0])
		secrets_log_error(s, secrets_append(s, x));
	return 0;
}

const uint8_t *secrets_find(const struct secrets *s, pid_t pid, uint64_t start_time)
{
	const struct secret *x = secrets_find_entry(s, pid, start_time);

	return x ? x->bytes : NULL;
}

bool secrets_is_former(const struct secrets *s, pid_t pid, uint64_t start_time)
{
	const struct secret *x = secrets_find_entry(s, pid, start_time);

	return x && x->former;
}

void secrets_forget(struct secrets *s, pid_t pid, uint64_t start_time)
{
	struct secret *x = secrets_find_entry(s, pid, start_time);

	if (x)
		*x = s->list[--s->n];
}
