/* See jvm_library.h. */
#include "daemon/discovery/jvm_library.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/maps.h"

static bool jvm_library_is(const char *base, const char *name)
{
	size_t len = strlen(name);

	return strncmp(base, name, len) == 0 && strcmp(base + len, ".so") == 0;
}

/* libj9vm29.so: the number is the release line */
static bool jvm_library_is_j9(const char *base)
{
	size_t digits;

	if (strncmp(base, "libj9vm", 7) != 0)
		return false;
	digits = strspn(base + 7, "0123456789");
	return strcmp(base + 7 + digits, ".so") == 0;
}

/* Parses "start-end perms offset dev inode   path". */
void jvm_library_line(void *library, char *line)
{
	static const char deleted_mark[] = " (deleted)";
	size_t mark = sizeof(deleted_mark) - 1;
	const char *perms = strchr(line, ' ');
	struct jvm_library *m = library;
	char *path, *base;
	bool deleted, j9;
	size_t len;

	/* only executable mappings: a program that maps the file as data is not a JVM */
	if (!perms || strlen(perms) < 5 || perms[3] != 'x')
		return;
	path = strchr(perms, '/');
	if (!path)
		return;
	len = strlen(path);
	deleted = len > mark && strcmp(path + len - mark, deleted_mark) == 0;
	if (deleted)
		path[len - mark] = '\0';
	base = strrchr(path, '/') + 1;
	j9 = jvm_library_is_j9(base);
	if ((!j9 && !jvm_library_is(base, "libjvm")) || (m->path[0] && (m->j9 || !j9)))
		return;
	if (strlen(path) >= sizeof(m->path))
		return;
	strcpy(m->path, path);
	m->deleted = deleted;
	m->j9 = j9;
}

int jvm_library_read(int pid_dfd, struct jvm_library *ret)
{
	int r;

	ret->deleted = ret->j9 = false;
	ret->path[0] = '\0';
	r = maps_each(pid_dfd, jvm_library_line, ret);
	return r == -ENOENT ? -ESRCH : r;
}
