/* See secrets.h. */
#include "daemon/upload/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/ground/mem.h"

#define PEM_MAX (512u << 10)

/* ---- changes --------------------------------------------------------------------------------- */

/* The files that were read, still open: the change time of one that is written to, replaced or
 * removed is a later one. */
static struct secrets_file {
	int fd;
	struct statx_timestamp changed;
} *files;
static unsigned n_files;

static bool secrets_change_time(int fd, struct statx_timestamp *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_CTIME, &st) < 0)
		return false;
	*ret = st.stx_ctime;
	return true;
}

static void secrets_watch(int fd)
{
	struct secrets_file f = { .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0) }, *more;

	if (f.fd < 0)
		return;
	more = secrets_change_time(f.fd, &f.changed)
		       ? realloc(files, (n_files + 1) * sizeof(*files))
		       : NULL;
	if (!more) {
		fd_close(f.fd);
		return;
	}
	files = more;
	files[n_files++] = f;
}

bool secrets_have_changed(void)
{
	struct statx_timestamp now;

	for (unsigned i = 0; i < n_files; i++)
		if (secrets_change_time(files[i].fd, &now) &&
		    (now.tv_sec != files[i].changed.tv_sec ||
		     now.tv_nsec != files[i].changed.tv_nsec))
			return true;
	return false;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads a whole file into malloc'ed, NUL-terminated memory. */
static int secrets_read_file(const char *path, size_t max, char **ret)
{
	CLEANUP(fd_closep)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	CLEANUP(freep) char *text = malloc(max + 1);
	struct stat st;
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	secrets_watch(fd); /* before it is read, so that no change is missed */
	if (!text)
		return -ENOMEM;
	while (len <= max && (n = read(fd, text + len, max + 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	if (len > max)
		return -EFBIG;
	if (memchr(text, '\0', len))
		return -EINVAL;
	text[len] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

/* Cuts the line break that editors add. Fails unless exactly one line is left. */
static int secrets_trim(char *text)
{
	size_t len = strlen(text);

	while (len && strchr(" \t\r\n", text[len - 1]))
		text[--len] = '\0';
	return len == 0 || strpbrk(text, "\r\n") ? -EINVAL : 0;
}

struct secrets_word {
	const char *key; /* the setting's name without _file and _env */
	const char *file, *variable;
	char *to;
	size_t size;
};

static int secrets_read_word(const struct secrets_word *w, char *why, size_t why_size)
{
	CLEANUP(freep) char *text = NULL;
	const char *value;
	int r = 0;

	if (w->file[0]) {
		r = secrets_read_file(w->file, w->size - 1, &text);
		if (r == 0)
			r = secrets_trim(text);
		if (r < 0)
			snprintf(why, why_size, "%s_file: %s: %s", w->key, w->file,
				 r == -EINVAL ? "it must be a file of one line" : strerror(-r));
		else
			snprintf(w->to, w->size, "%s", text);
		if (text)
			explicit_bzero(text, strlen(text));
	} else if (w->variable[0]) {
		value = getenv(w->variable);
		if (!value || !*value || strlen(value) >= w->size || strpbrk(value, "\r\n")) {
			snprintf(
				why, why_size,
				"%s_env: %s is not in the environment of kindlingd, or is too long",
				w->key, w->variable);
			return -ENOENT;
		}
		snprintf(w->to, w->size, "%s", value);
	}
	return r;
}

static int secrets_read_pem(const char *key, const char *path, char **ret, char *why,
			    size_t why_size)
{
	int r = path[0] ? secrets_read_file(path, PEM_MAX, ret) : 0;

	if (r == 0 && *ret && !strstr(*ret, "-----BEGIN "))
		r = -EINVAL;
	if (r < 0)
		snprintf(why, why_size, "%s: %s: %s", key, path,
			 r == -EINVAL ? "it is not a PEM file" : strerror(-r));
	return r;
}

int secrets_read(const struct config_sink *c, struct sink_secrets *ret, char *why, size_t why_size)
{
#define WORD(name)                                                                 \
	{                                                                          \
#name, c->name##_file, c->name##_env, ret->name, sizeof(ret->name) \
	}
	const struct secrets_word words[] = { WORD(password), WORD(bearer), WORD(access_key),
					      WORD(secret_key), WORD(session_token) };
#undef WORD
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words) && r == 0; i++)
		r = secrets_read_word(&words[i], why, why_size);
	if (r == 0)
		r = secrets_read_pem("ca_file", c->ca_file, &ret->ca, why, why_size);
	if (r == 0)
		r = secrets_read_pem("cert_file", c->cert_file, &ret->cert, why, why_size);
	if (r == 0)
		r = secrets_read_pem("key_file", c->key_file[0] ? c->key_file : c->cert_file,
				     &ret->key, why, why_size);
	return r;
}
