/*
 * Checks the commands that the data process wants started. An attacker may control that process by
 * the data it reads, and the programs have root's rights: so only known arguments are accepted.
 */
#include "daemon/core/warden_priv.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool warden_check_is_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n > 0 && n <= 20 && !s[n];
}

/* "deadline_ms=5000" */
static bool warden_check_option(const char *s)
{
	static const char *const names[] = { "uid",	 "pipe",  "known",   "deadline_ms",
					     "pipes_fd", "quiet", "over_tmp" };
	const char *equals = strchr(s, '=');

	if (!equals || !warden_check_is_number(equals + 1))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == (size_t)(equals - s) &&
		    strncmp(s, names[i], (size_t)(equals - s)) == 0)
			return true;
	return false;
}

/* Can only root change @path: does root own it and every directory above it, and can nobody else
 * write to them? Other users may write to a sticky directory such as /tmp, because they cannot
 * replace root's files in it. */
static bool warden_check_only_root(const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	size_t len = strlen(path);

	if (path[0] != '/' || len >= sizeof(part))
		return false;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (lstat(part, &st) < 0 || st.st_uid != 0)
			return false;
		if (!S_ISLNK(st.st_mode) && (st.st_mode & 022) &&
		    !(S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX)))
			return false;
	}
	return true;
}

/* Is @path the one that the daemon was started with; or, after a reload of the settings, one that
 * only root can have put there? */
static bool warden_check_path(const char *path, const char *given)
{
	char real[PATH_MAX];

	if (given[0] && strcmp(path, given) == 0)
		return true;
	return warden_check_only_root(path) && realpath(path, real) && warden_check_only_root(real);
}

static bool warden_check_injector(const struct warden_settings *s, char *const argv[])
{
	static const char *const commands[] = { "attach", "receive", "reattach", "cleanup" };
	unsigned n = 0, command = 0;

	while (argv[n])
		n++;
	if (n < 6 || strcmp(argv[1], "--result-fd") != 0 || strcmp(argv[2], "3") != 0 ||
	    !warden_check_is_number(argv[3]) || !warden_check_is_number(argv[4]))
		return false;
	while (command < 4 && strcmp(argv[5], commands[command]) != 0)
		command++;
	if (command == 4 || (command == 0 && (n < 7 || !warden_check_path(argv[6], s->library))))
		return false;
	for (unsigned i = command == 0 ? 7 : 6; i < n; i++)
		if (!warden_check_option(argv[i]))
			return false;
	return true;
}

int warden_check(const struct warden_settings *s, enum warden_program program, char *const argv[])
{
	const char *given = s->programs[program];
	bool ok;

	switch (program) {
	case WARDEN_INJECTOR:
		ok = warden_check_path(argv[0], given) && warden_check_injector(s, argv);
		break;
	case WARDEN_SYMBOLS: /* any path: the program gives up all rights before it opens that */
		ok = strcmp(argv[0], given) == 0 && (!argv[1] || (argv[1][0] != '-' && !argv[2]));
		break;
	case WARDEN_UPLOAD: /* reads the settings as root: only those of the daemon's start */
		ok = strcmp(argv[0], given) == 0 && s->file && s->state_dir && argv[1] &&
		     strcmp(argv[1], s->state_dir) == 0 && argv[2] &&
		     strcmp(argv[2], s->file) == 0 && !argv[3];
		break;
	default:
		ok = strcmp(argv[0], given) == 0 && !argv[1];
		break;
	}
	return ok ? 0 : -EACCES;
}
