/*
 * Refuses JVMs whose JDK has a bug that makes attaching unsafe: the version, read from the JVM's
 * memory, is looked up in the table of proto/jdk_bugs.h. A JVM whose version cannot be read passes,
 * because no bug of it is known.
 */
#include "injector/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "injector/vmflags.h"

#define SOCKETS_BYTES_MAX (4u << 20)
#define FDS_MAX		  65536

/* Lines are "<address>: <refs> <protocol> <flags> <type> <state> <inode> <path>". The JVM creates
 * its socket under a name that ends with ".tmp" and renames it once it listens; /proc/PID/net/unix
 * keeps showing the first name. */
uint64_t jdk_socket_inode(const char *line, int ns_pid)
{
	char wanted[40], path[128];
	uint64_t inode;
	unsigned flags;

	snprintf(wanted, sizeof(wanted), "/tmp/.java_pid%d.tmp", ns_pid);
	if (sscanf(line, "%*s %*x %*x %x %*x %*x %" SCNu64 " %127s", &flags, &inode, path) != 3 ||
	    !(flags & 0x10000) || strcmp(path, wanted) != 0) /* __SO_ACCEPTCON */
		return 0;
	return inode;
}

static bool has_socket(const struct inject *in, uint64_t inode)
{
	CLEANUP(fd_closep)
	int dfd = openat(in->proc_dfd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dfd >= 0 ? fdopendir(fcntl(dfd, F_DUPFD_CLOEXEC, 3)) : NULL;
	char wanted[40], link[40];
	bool found = false;
	struct dirent *e;

	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	for (int i = 0; dir && !found && i < FDS_MAX && (e = readdir(dir)); i++) {
		ssize_t n = readlinkat(dfd, e->d_name, link, sizeof(link) - 1);

		if (n > 0) {
			link[n] = '\0';
			found = strcmp(link, wanted) == 0;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Does the JVM listen on a socket whose name is gone, for example because a job that cleans /tmp
 * removed it? */
static bool lost_its_socket(const struct inject *in)
{
	CLEANUP(fd_closep) int fd = openat(in->proc_dfd, "net/unix", O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 3), "re") : NULL;
	size_t total = 0;
	bool lost = false;
	char line[512];

	if (attach_has_socket(in))
		goto out;
	while (f && !lost && total < SOCKETS_BYTES_MAX && fgets(line, sizeof(line), f)) {
		uint64_t inode = jdk_socket_inode(line, in->ns_pid);

		total += strlen(line);
		lost = inode && has_socket(in, inode);
	}
out:
	if (f)
		fclose(f);
	return lost;
}

static bool has_name(const struct inject *in, const char *tail)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in), fd = -1;
	char name[40];

	snprintf(name, sizeof(name), ".java_pid%d%s", in->ns_pid, tail);
	fd = tmp < 0 ? tmp : files_open(tmp, name, O_PATH | O_NOFOLLOW, 0);
	return fd != -ENOENT;
}

/* The final name is checked last, because the JVM renames from ".tmp" to it: a rename between the
 * two checks is then noticed. */
bool jdk_lost_its_socket(const struct inject *in)
{
	return lost_its_socket(in) && !has_name(in, ".tmp") && !has_name(in, "");
}

bool jdk_makes_sockets_again(struct inject *in)
{
	struct jdk_version v = { 0, 0 };

	return vmflags_version(in, &v) == 0 && v.feature > 0 && !jdk_bug_affects(JDK_BUG_SOCKET, v);
}

static const char *version_text(struct jdk_version v, char buf[32])
{
	snprintf(buf, 32,
		 v.feature == 8 ? "%du%d"
		 : v.update	? "%d.0.%d"
				: "%d",
		 v.feature, v.update);
	return buf;
}

int jdk_check(struct inject *in)
{
	struct jdk_version v = { 0, 0 };
	static char text[64];
	char is[32], good[32];
	int r = vmflags_version(in, &v);

	if (in->only_checks && (r == -EACCES || r == -EPERM))
		return fault_set(in->fault, -r, FAULT_PREFLIGHT,
				 "cannot read the JDK's version from the JVM's memory: ");
	if (r < 0)
		return 0;
	if (jdk_bug_affects(JDK_BUG_SOCKET, v) && in->root_dfd >= 0 && lost_its_socket(in)) {
		fault_set(
			in->fault, ENOTSUP, FAULT_PREFLIGHT,
			"its attach socket was deleted, and JDK %s cannot create another (JDK %s can)",
			version_text(v, is),
			version_text(jdk_bug_fixed_in(JDK_BUG_SOCKET, v), good));
		in->fault->flags |= FAULT_PERMANENT;
		return -ENOTSUP;
	}
	snprintf(text, sizeof(text), "JDK %s has no known bug that makes attaching unsafe",
		 version_text(v, is));
	in->found = text;
	return 0;
}
