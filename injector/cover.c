/*
 * Mounts a tmpfs over the target's /tmp during an attach, for a JVM in a read-only root without any
 * writable directory, which could not create its attach socket otherwise. The tmpfs holds
 * everything that an attach needs: library, FIFOs, .attach_pid, and the JVM's socket. When it is
 * unmounted, the JVM keeps the files that it has mapped and open.
 *
 * Only one attempt uses a tmpfs at a time: it holds exclusive locks on the covered /tmp and on the
 * root of the tmpfs. If nobody holds the lock of a tmpfs, a killed attempt left it; the attempt
 * that finds it uses it and unmounts it at the end. The tmpfs stays as long as a JVM may still look
 * for an .attach_pid file in it. An attempt that needs no tmpfs shares the lock of /tmp, because
 * its JVM would not find the .attach_pid file in a /tmp that is covered meanwhile, and would print
 * a thread dump.
 */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/proc.h"

#define BYTES	       (16u << 20) /* limit; it may hold several attempts' libraries */
#define FILES	       64
#define MOUNTINFO_SIZE (1u << 20)
#define PAUSE_MS       5
/* longer than an attempt holds the lock of /tmp before it has mounted its tmpfs */
#define LOCK_NS (500 * NS_PER_MS)

/* ---- finding one -------------------------------------------------------------------------- */

/* Is the mount a tmpfs with kindling's source? Lines of /proc/PID/mountinfo, proc(5): "ID PARENT
 * MAJOR:MINOR ROOT POINT OPTIONS TAGS... - TYPE SOURCE OPTIONS" */
static bool has_our_source(const struct inject *in, uint64_t mount_id)
{
	char *text = malloc(MOUNTINFO_SIZE), *save = NULL;
	bool ours = false;

	if (text && proc_read(in->proc_dfd, "mountinfo", text, MOUNTINFO_SIZE) > 0)
		for (char *line = strtok_r(text, "\n", &save); line && !ours;
		     line = strtok_r(NULL, "\n", &save))
			ours = strtoull(line, NULL, 10) == mount_id &&
			       strstr(line, " - tmpfs " MOUNT_SOURCE " ");
	free(text);
	return ours;
}

static bool cover_is_ours(const struct inject *in, int dfd)
{
	struct statx st;

	return mount_is_ours(dfd) &&
	       syscall(SYS_statx, dfd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 &&
	       st.stx_mask & STATX_MNT_ID && has_our_source(in, st.stx_mnt_id);
}

/* Is @fd still the directory that /tmp leads to? Not if a mount was added to or removed from it
 * since it was opened. */
static bool is_tmp(const struct inject *in, int fd)
{
	CLEANUP(fd_closep) int again = files_open_tmp(in);
	struct stat a, b;

	return again >= 0 && fstat(again, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int cover_busy(struct inject *in)
{
	return fault_set(in->fault, EBUSY, FAULT_PLACEMENT,
			 "another attach to the same container is still under way: ");
}

/* Opens and locks /tmp itself. -EAGAIN = another attempt holds the lock, or /tmp was covered or
 * uncovered meanwhile. @how: LOCK_EX or LOCK_SH */
static int lock_tmp(const struct inject *in, int tmp_dfd, int how)
{
	CLEANUP(fd_closep) int fd = files_open(tmp_dfd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return fd;
	return flock(fd, how | LOCK_NB) == 0 && is_tmp(in, fd) ? TAKE_FD(fd) : -EAGAIN;
}

int cover_find(struct inject *in)
{
	for (;; inject_pause_ms(PAUSE_MS)) {
		CLEANUP(fd_closep) int tmp = files_open_tmp(in);

		if (tmp < 0 || !cover_is_ours(in, tmp))
			return 0;
		in->cover_fd = lock_tmp(in, tmp, LOCK_EX);
		if (in->cover_fd >= 0)
			return 1;
		if (inject_remaining_ms(in) == 0)
			return cover_busy(in);
	}
}

/* Is the target in our mount namespace or the host's? Then it shares its /tmp with other
 * processes. */
static bool is_namespace_of_host(const struct inject *in)
{
	static const char *const others[] = { "/proc/self/ns/mnt", "/proc/1/ns/mnt" };
	struct stat theirs, st;

	if (in->mnt_ns_fd < 0 || fstat(in->mnt_ns_fd, &theirs) < 0)
		return true;
	/* the namespace of pid 1 may be hidden from us; then the target's is taken to be another
	 * one */
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (stat(others[i], &st) == 0 && st.st_ino == theirs.st_ino &&
		    st.st_dev == theirs.st_dev)
			return true;
	return false;
}

int cover_begin(struct inject *in)
{
	uint64_t end = clock_mono_ns() + LOCK_NS;

	for (;; inject_pause_ms(PAUSE_MS)) {
		CLEANUP(fd_closep) int tmp = -1, lock = -1;
		int r = cover_find(in);

		if (r != 0 || is_namespace_of_host(in))
			return r;
		tmp = files_open_tmp(in);
		lock = tmp < 0 ? tmp : lock_tmp(in, tmp, LOCK_SH);
		if (lock >= 0 && cover_is_ours(in, lock))
			continue;
		/* somebody who holds the lock for long does not obstruct the attach */
		if (lock == -EAGAIN && clock_mono_ns() < end)
			continue;
		in->covered_fd = lock < 0 ? -1 : TAKE_FD(lock);
		return 0;
	}
}

/* ---- mounting it ----------------------------------------------------------------------------- */

static int cover_mount_at(struct inject *in, int tmp_dfd)
{
	CLEANUP(fd_closep) int mount = -1, root = -1;
	int r = mount_make_cover(BYTES, FILES, &mount);

	if (r < 0)
		return r;
	root = files_open(mount, ".", O_RDONLY | O_DIRECTORY, 0);
	if (root < 0)
		return root;
	if (flock(root, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	r = mount_attach(in, mount, tmp_dfd);
	if (r == 0)
		in->cover_fd = TAKE_FD(root);
	return r;
}

int cover_mount(struct inject *in)
{
	int r;

	if (is_namespace_of_host(in))
		return fault_set(
			in->fault, EPERM, FAULT_PLACEMENT,
			"the JVM has no writable /tmp, and kindling never covers the host's /tmp with a tmpfs");
	in->covered_fd = fd_close(in->covered_fd); /* two that share the lock would wait for each
						    * other */
	for (;; inject_pause_ms(PAUSE_MS)) {
		CLEANUP(fd_closep) int tmp = files_open_tmp(in);

		r = cover_find(in);
		if (r != 0)
			return r < 0 ? r : 0;
		in->covered_fd = tmp < 0 ? tmp : lock_tmp(in, tmp, LOCK_EX);
		r = in->covered_fd < 0 ? in->covered_fd : cover_mount_at(in, tmp);
		if (r == 0)
			return 0;
		in->covered_fd = fd_close(in->covered_fd);
		if (r != -EAGAIN)
			return fault_set(
				in->fault, -r, FAULT_PLACEMENT,
				"the JVM has no writable /tmp, and no tmpfs can be mounted over it: ");
		if (inject_remaining_ms(in) == 0)
			return cover_busy(in);
	}
}

/* ---- removing it --------------------------------------------------------------------- */

void cover_end(struct inject *in)
{
	if (in->cover_fd >= 0) {
		attach_end_listener(in, in->cover_fd);
		if (attach_file_is_awaited(in, in->cover_fd))
			in->left = true;
		else
			(void)mount_detach(in, in->cover_fd);
	}
	in->cover_fd = fd_close(in->cover_fd);
	in->covered_fd = fd_close(in->covered_fd);
}
