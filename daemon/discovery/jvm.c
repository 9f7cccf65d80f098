/* See jvm.h. */
#include "daemon/discovery/jvm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/discovery/container.h"
#include "daemon/discovery/jvm_library.h"
#include "daemon/discovery/name.h"
#include "daemon/discovery/release.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "daemon/ground/utf8.h"

#define CMDLINE_MAX_BYTES (512u * 1024) /* class paths are long */

static bool jvm_is_dead(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

static int jvm_read_stat(int pid_dfd, struct proc_stat *ret)
{
	char text[1024];
	ssize_t n = proc_read(pid_dfd, "stat", text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (!proc_parse_stat(text, ret))
		return -EBADMSG;
	return jvm_is_dead(ret->state) ? -ESRCH : 0;
}

static int jvm_read_status(int pid_dfd, struct proc_status *ret)
{
	char text[8192];
	ssize_t n = proc_read(pid_dfd, "status", text, sizeof(text));

	if (n < 0)
		return (int)n;
	return proc_parse_status(text, ret) ? 0 : -EBADMSG;
}

/* Writes the file name of the running program, "" if it cannot be read. */
static void jvm_read_exe(int pid_dfd, char *ret, size_t size)
{
	char path[4096];
	ssize_t n = readlinkat(pid_dfd, "exe", path, sizeof(path) - 1);
	char *base, *deleted;

	ret[0] = '\0';
	if (n <= 0)
		return;
	path[n] = '\0';
	deleted = strstr(path, " (deleted)");
	if (deleted && deleted[strlen(" (deleted)")] == '\0')
		*deleted = '\0';
	base = strrchr(path, '/');
	base = base ? base + 1 : path;
	utf8_copy(ret, size, base, strlen(base));
}

static void jvm_read_name(int pid_dfd, struct jvm *jvm)
{
	CLEANUP(freep) char *cmdline = malloc(CMDLINE_MAX_BYTES);
	char exe[64];
	ssize_t n = -ENOMEM;

	jvm_read_exe(pid_dfd, exe, sizeof(exe));
	if (cmdline)
		n = proc_read(pid_dfd, "cmdline", cmdline, CMDLINE_MAX_BYTES);
	jvm_name(cmdline ? cmdline : "", n > 0 ? (size_t)n : 0, exe, jvm->comm, jvm->name,
		 sizeof(jvm->name));
}

static int jvm_describe(int proc_dfd, int pid_dfd, const struct jvm_library *library,
			struct jvm *jvm)
{
	struct proc_status status;
	int r;

	r = jvm_read_status(pid_dfd, &status);
	if (r < 0)
		return r;
	jvm->ns_pid = status.ns_pid ? status.ns_pid : jvm->pid;
	jvm->uid = status.uid;
	jvm->gid = status.gid;
	utf8_copy(jvm->libjvm, sizeof(jvm->libjvm), library->path, strlen(library->path));
	jvm->libjvm_deleted = library->deleted;
	jvm_read_name(pid_dfd, jvm);
	container_describe(proc_dfd, pid_dfd, jvm);
	release_read(pid_dfd, library->path, jvm);
	return status.caught & 1ull << (SIGQUIT - 1) ? JVM_READY : JVM_YOUNG;
}

int jvm_probe(int proc_dfd, pid_t pid, struct jvm *ret)
{
	CLEANUP(fd_closep) int pid_dfd = proc_open(proc_dfd, pid);
	CLEANUP(freep) struct jvm_library *library = NULL;
	struct jvm jvm = { .pid = pid };
	struct proc_stat stat;
	int r;

	if (pid_dfd < 0)
		return pid_dfd;
	library = malloc(sizeof(*library));
	if (!library)
		return -ENOMEM;
	r = jvm_library_read(pid_dfd, library);
	if (r < 0)
		return r;
	if (!library->path[0])
		return JVM_NO;
	r = jvm_read_stat(pid_dfd, &stat);
	if (r < 0)
		return r;
	jvm.start_time = stat.start_time;
	memcpy(jvm.comm, stat.comm, sizeof(jvm.comm));
	r = jvm_describe(proc_dfd, pid_dfd, library, &jvm);
	if (r < 0)
		return r;
	*ret = jvm;
	return r;
}

void jvm_end_texts(struct jvm *jvm)
{
#define JVM_END_TEXT(field) jvm->field[sizeof(jvm->field) - 1] = '\0'
	JVM_END_TEXT(comm);
	JVM_END_TEXT(name);
	JVM_END_TEXT(jdk);
	JVM_END_TEXT(libjvm);
	JVM_END_TEXT(libjvm_build);
	JVM_END_TEXT(container_id);
	JVM_END_TEXT(container);
	JVM_END_TEXT(pod);
	JVM_END_TEXT(image);
	JVM_END_TEXT(notes);
	JVM_END_TEXT(noted_service);
	JVM_END_TEXT(noted_version);
	JVM_END_TEXT(image_digest);
#undef JVM_END_TEXT
	allowed_check(&jvm->allowed);
}
