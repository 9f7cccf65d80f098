/* See look_message.h: finds the answers, with a function for each kind of question. */
#include "daemon/discovery/look_message.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"

#define FILE_BYTES_MAX ((off_t)1 << 30)

static int look_find_out_root_of(int pid_dfd)
{
	return openat(pid_dfd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the file that the process has mapped, even if it is deleted (map_files); if the kernel does
 * not allow that, by its path. */
static int look_open_mapped(int pid_dfd, int root_dfd, const struct look_question *q)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)q->mapped.begin,
		 (unsigned long long)q->mapped.end);
	fd = openat(pid_dfd, name, O_PATH | O_CLOEXEC);
	if (fd < 0 && root_dfd >= 0 && memchr(q->mapped.path, '\0', sizeof(q->mapped.path)))
		fd = (int)syscall(SYS_openat2, root_dfd, q->mapped.path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int look_find_mapped(int pid_dfd, const struct look_question *q, struct look_answer *ret,
			    int fds[LOOK_FDS])
{
	CLEANUP(fd_closep) int root = look_find_out_root_of(pid_dfd);
	CLEANUP(fd_closep) int file = look_open_mapped(pid_dfd, root, q);

	if (file < 0)
		return file;
	if (fstat(file, &ret->file) < 0)
		return -errno;
	if (!S_ISREG(ret->file.st_mode) || ret->file.st_size > FILE_BYTES_MAX)
		return -EINVAL;
	fds[0] = TAKE_FD(file);
	fds[1] = TAKE_FD(root);
	return 0;
}

static int look_find_cwd(int pid_dfd, int fds[LOOK_FDS])
{
	fds[0] = openat(pid_dfd, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fds[0] < 0 ? -errno : 0;
}

/* Looks for hs_err_pidN.log. Only its attributes are read; it is never opened. */
static int look_find_hs_err(const struct look_question *q, int dfd)
{
	struct stat st;
	char name[40];

	snprintf(name, sizeof(name), "hs_err_pid%d.log", q->hs_err.ns_pid);
	return fstatat(dfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_uid == q->hs_err.uid && st.st_mtim.tv_sec >= q->hs_err.since_s;
}

/* Opens the directory of this very process; a later process with the same pid is refused. */
static int look_open_process(int proc_dfd, const struct look_question *q)
{
	CLEANUP(fd_closep) int pid_dfd = proc_open(proc_dfd, q->pid);
	struct proc_stat stat;
	char text[1024];
	ssize_t n;

	if (pid_dfd < 0)
		return pid_dfd;
	n = proc_read(pid_dfd, "stat", text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (!proc_parse_stat(text, &stat) || stat.start_time != q->start_time)
		return -ESRCH;
	return TAKE_FD(pid_dfd);
}

static int look_find_of_process(int proc_dfd, const struct look_question *q, int fd,
				struct look_answer *ret, int fds[LOOK_FDS])
{
	CLEANUP(fd_closep) int pid_dfd = look_open_process(proc_dfd, q);

	if (pid_dfd < 0)
		return pid_dfd;
	switch (q->kind) {
	case LOOK_FACTS:
		return facts_read(pid_dfd, fd, &ret->facts);
	case LOOK_CWD:
		return look_find_cwd(pid_dfd, fds);
	case LOOK_MAPPED:
		return look_find_mapped(pid_dfd, q, ret, fds);
	default:
		return -EINVAL;
	}
}

void look_find_out(int proc_dfd, const struct look_question *q, int fd, struct look_answer *ret,
		   int fds[LOOK_FDS])
{
	uint64_t begin = clock_mono_ns();

	ret->number = q->number;
	if (q->kind == LOOK_JVM)
		ret->result = jvm_probe(proc_dfd, q->pid, &ret->jvm);
	else if (q->kind == LOOK_HS_ERR)
		ret->result = look_find_hs_err(q, fd);
	else
		ret->result = look_find_of_process(proc_dfd, q, fd, ret, fds);
	ret->took_ns = clock_mono_ns() - begin;
}
