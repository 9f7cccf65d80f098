/*
 * .attach_pidN in the working directory or /tmp: what makes HotSpot take SIGQUIT as "open the
 * attach socket". A JVM that finds none, or one of a stranger, prints a thread dump into the
 * application's output instead. So it stays until the socket has answered or no SIGQUIT is pending
 * any more.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include "daemon/core/clock.h"

#define STALE_AGE_S                                                                  \
	5 /* a file younger than this may be of somebody else's attach that runs now \
	   */

bool attach_sigquit_pending(const struct inject *in)
{
	char status[16384];
	uint64_t bit = 1ull << (SIGQUIT - 1);

	if (!inject_alive(in) || proc_read(in->proc_dfd, "status", status, sizeof(status)) <= 0)
		return false;
	return (proc_signal_mask(status, "ShdPnd:") | proc_signal_mask(status, "SigPnd:")) & bit;
}

static bool is_stale(const struct stat *st)
{
	return (uint64_t)st->st_ctime + STALE_AGE_S < clock_real_ns() / NS_PER_S;
}

/*
 * A file that is there already is of an attach that runs now, of ours or of somebody else's tool,
 * to this JVM or to one of another pid namespace that shares the directory. Its end is waited for:
 * two that use one file take it away from each other. One of a killed attach would be in the way
 * for ever; only root may remove it where its owner is another.
 */
static int make_in(const struct inject *in, int dfd)
{
	struct stat st;
	int fd;

	while ((fd = openat(dfd, in->attach_file,
			    O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0660)) < 0) {
		if (errno != EEXIST)
			return -errno;
		if (inject_remaining_ms(in) == 0)
			return -EBUSY;
		if (fstatat(dfd, in->attach_file, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_stale(&st)) {
			files_as_root();
			(void)unlinkat(dfd, in->attach_file, 0);
			if (files_as_target(in) < 0)
				return -EPERM;
		}
		inject_pause_ms(5);
	}
	fd_close(fd);
	return 0;
}

int attach_file_make(struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);
	CLEANUP(fd_closep) int cwd = fcntl(in->cwd_dfd, F_DUPFD_CLOEXEC, 3);
	int r;

	snprintf(in->attach_file, sizeof(in->attach_file), ".attach_pid%d", in->ns_pid);
	r = files_as_target(in);
	if (r == 0) {
		/* the JVM looks into its working directory first, then into /tmp */
		r = make_in(in, cwd);
		if (r == 0) {
			in->attach_dfd = TAKE_FD(cwd);
		} else if (tmp >= 0 && r != -EBUSY) {
			r = make_in(in, tmp);
			if (r == 0)
				in->attach_dfd = TAKE_FD(tmp);
		}
	}
	files_as_root();
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT,
				 "%s can be made neither in its working directory nor in /tmp: ",
				 in->attach_file);
	return 0;
}

void attach_file_forget(struct inject *in)
{
	if (in->attach_dfd < 0)
		return;
	if (files_as_target(in) == 0)
		(void)unlinkat(in->attach_dfd, in->attach_file, 0);
	files_as_root();
	in->attach_dfd = fd_close(in->attach_dfd);
}

bool attach_file_give_up(struct inject *in)
{
	for (int i = 0; i < 200 && attach_sigquit_pending(in); i++)
		inject_pause_ms(10);
	if (attach_sigquit_pending(in)) {
		in->attach_dfd =
			fd_close(in->attach_dfd); /* stopped or frozen: the file must stay */
		return false;
	}
	inject_pause_ms(50); /* taken by the handler, but the file is looked for a little later */
	attach_file_forget(in);
	return true;
}

static void cleanup_in(const struct inject *in, int dfd)
{
	struct stat st;

	if (dfd >= 0 && fstatat(dfd, in->attach_file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && st.st_size == 0 && st.st_uid == in->uid && is_stale(&st))
		(void)unlinkat(dfd, in->attach_file, 0);
}

void attach_file_cleanup(struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open_tmp(in);

	snprintf(in->attach_file, sizeof(in->attach_file), ".attach_pid%d", in->ns_pid);
	if (attach_sigquit_pending(in) || files_as_target(in) < 0)
		return;
	cleanup_in(in, in->cwd_dfd);
	cleanup_in(in, tmp);
	files_as_root();
}
