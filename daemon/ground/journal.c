/* See journal.h. */
#include "daemon/ground/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "daemon/ground/mem.h"

#define FIELDS_MAX 4096

static int journal_fd = -1;

int journal_open(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = -1;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	strcpy(to.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return -errno;
	journal_close();
	journal_fd = TAKE_FD(fd);
	return 0;
}

void journal_close(void)
{
	journal_fd = fd_close(journal_fd);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Keys that become fields; others are only part of MESSAGE. */
static const struct {
	const char *key, *field;
} journal_keys[] = {
	{ "pid", "KINDLING_PID" },     { "container", "KINDLING_CONTAINER" },
	{ "name", "KINDLING_NAME" },   { "from", "KINDLING_FROM" },
	{ "to", "KINDLING_TO" },       { "reason", "KINDLING_REASON" },
	{ "error", "KINDLING_ERROR" }, { "step", "KINDLING_STEP" },
	{ "sink", "KINDLING_SINK" },
};

static const char *journal_field_of(const char *key, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(journal_keys); i++)
		if (strlen(journal_keys[i].key) == len &&
		    strncmp(journal_keys[i].key, key, len) == 0)
			return journal_keys[i].field;
	return NULL;
}

struct journal_text {
	char *buf;
	size_t size, len;
	bool failed;
};

static void journal_put(struct journal_text *t, char c)
{
	if (t->len == t->size)
		t->failed = true;
	else
		t->buf[t->len++] = c;
}

/* Replaces newlines, because one would end the field and begin another one. */
static void journal_put_value(struct journal_text *t, char c)
{
	journal_put(t, c == '\n' ? ' ' : c);
}

static void journal_begin(struct journal_text *t, const char *field)
{
	for (; *field; field++)
		journal_put(t, *field);
	journal_put(t, '=');
}

/* Appends the value at @s, without its quotes, as @field; NULL = skips it. Returns its end. */
static const char *journal_value(struct journal_text *t, const char *field, const char *s)
{
	bool quoted = *s == '"';
	size_t begin = t->len;

	if (field)
		journal_begin(t, field);
	for (s += quoted; *s && *s != (quoted ? '"' : ' '); s++) {
		if (quoted && *s == '\\' && s[1])
			s++;
		if (field)
			journal_put_value(t, *s);
	}
	if (field && t->len == begin + strlen(field) + 1)
		t->len = begin; /* an empty field is left out */
	else if (field)
		journal_put(t, '\n');
	return quoted && *s ? s + 1 : s;
}

static void journal_pairs(struct journal_text *t, const char *s)
{
	while (*s) {
		size_t len = strcspn(s, "= \"");

		if (len && s[len] == '=')
			s = journal_value(t, journal_field_of(s, len), s + len + 1);
		else
			s += len ? len : 1;
	}
}

size_t journal_fields(int priority, const char *line, char *buf, size_t size)
{
	struct journal_text t = { .buf = buf, .size = size };
	size_t event = strcspn(line, " \n");
	char head[64];

	snprintf(head, sizeof(head), "PRIORITY=%d\nSYSLOG_IDENTIFIER=kindlingd\n", priority);
	for (const char *p = head; *p; p++)
		journal_put(&t, *p);
	journal_begin(&t, "KINDLING_EVENT");
	for (size_t i = 0; i < event; i++)
		journal_put(&t, line[i]);
	journal_put(&t, '\n');
	journal_begin(&t, "MESSAGE");
	for (const char *p = line; *p; p++)
		journal_put_value(&t, *p);
	journal_put(&t, '\n');
	journal_pairs(&t, line + event);
	return t.failed ? 0 : t.len;
}

bool journal_send(int priority, const char *line)
{
	char buf[FIELDS_MAX];
	size_t len = journal_fd < 0 ? 0 : journal_fields(priority, line, buf, sizeof(buf));

	return len && send(journal_fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}
