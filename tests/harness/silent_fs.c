/*
 * A process that looks like a JVM, on a file system that does not answer: it has libjvm.so of that
 * file system in its maps and catches SIGQUIT.
 *
 *   silent_fs DIRECTORY library     libjvm.so is there, seen through an overlay: a local file for
 *                                   who goes by the kinds of mounts
 *   silent_fs DIRECTORY root        so are its root and working directory
 *
 *   silent_fs DIRECTORY FILE COMMAND...
 *                                   another kind: becomes COMMAND. Every name there is a copy of
 *                                   FILE, in the page cache, and answers end when the one who gives
 *                                   them, its child, gets SIGUSR1
 *
 * The process is user 4711's. Mounts the file system in DIRECTORY, in a namespace of its own, and
 * answers while the process gets ready. Then it says READY and the process' number, takes every
 * request and answers none, until it is killed: a process that waits for an answer cannot be killed.
 * It also ends when the process that started it ends, so that a killed test leaves none in such a
 * wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	 4096
#define TENANT	 4711
#define FILE_INO 2 /* every name on the file system is this file */

static const char fuse_options[] =
	"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions";

static const char zeros[PAGE];
static const char *content = zeros;
static size_t content_len = PAGE;
static volatile sig_atomic_t silent;

/* ---- the file system ------------------------------------------------------------------------ */

static void reply(int fd, uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + len),
				     .error = error,
				     .unique = unique };
	struct iovec iov[2] = { { &h, sizeof(h) }, { (void *)(uintptr_t)data, len } };

	(void)!writev(fd, iov, len ? 2 : 1);
}

static struct fuse_attr attr_of(uint64_t ino)
{
	struct fuse_attr a = { .ino = ino, .nlink = 1, .blksize = PAGE };

	a.mode = ino == FILE_INO ? S_IFREG | 0755 : S_IFDIR | 0755;
	a.size = ino == FILE_INO ? content_len : 0;
	return a;
}

static void reply_init(int fd, const struct fuse_in_header *in)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = 32 * PAGE,
				     .max_write = PAGE };

	reply(fd, in->unique, 0, &out, sizeof(out));
}

static void reply_read(int fd, const struct fuse_in_header *in)
{
	const struct fuse_read_in *r = (const void *)(in + 1);
	size_t from = r->offset < content_len ? r->offset : content_len;
	size_t len = content_len - from < r->size ? content_len - from : r->size;

	reply(fd, in->unique, 0, content + from, len);
}

/* Answers with a lifetime of 0, so that the kernel asks again each time. */
static void answer(int fd, const struct fuse_in_header *in)
{
	struct fuse_entry_out entry = { .nodeid = FILE_INO, .attr = attr_of(FILE_INO) };
	struct fuse_attr_out attr = { .attr = attr_of(in->nodeid) };
	struct fuse_open_out open_out = { .open_flags = FOPEN_KEEP_CACHE };
	struct fuse_statfs_out statfs = { .st = { .bsize = PAGE, .namelen = 255 } };

	switch (in->opcode) {
	case FUSE_INIT:
		reply_init(fd, in);
		return;
	case FUSE_LOOKUP:
		reply(fd, in->unique, 0, &entry, sizeof(entry));
		return;
	case FUSE_GETATTR:
		reply(fd, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_STATFS:
		reply(fd, in->unique, 0, &statfs, sizeof(statfs));
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(fd, in->unique, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_READ:
		reply_read(fd, in);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return;
	default:
		reply(fd, in->unique, -ENOSYS, NULL, 0);
	}
}

/* ---- the process ---------------------------------------------------------------------------- */

static void on_sigquit(int signo)
{
	(void)signo;
}

static int map_library(const char *dir)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/libjvm.so", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return -1;
	return close(fd);
}

static int cover(const char *below, const char *dir)
{
	char empty[300], options[600];

	snprintf(empty, sizeof(empty), "%s.empty", dir);
	snprintf(options, sizeof(options), "lowerdir=%s:%s", below, empty);
	(void)mkdir(empty, 0755);
	return mount("overlay", dir, "overlay", MS_RDONLY, options);
}

static void be_jvm(const char *fs, const char *dir, bool on_root, int ready_fd)
{
	char overlay[256];

	(void)signal(SIGQUIT, on_sigquit);
	snprintf(overlay, sizeof(overlay), "%s/overlay", dir);
	(void)mkdir(overlay, 0755);
	if (on_root ? map_library(fs) < 0 || chroot(fs) < 0 || chdir("/") < 0
		    : cover(fs, overlay) < 0 || map_library(overlay) < 0)
		_exit(1);
	/* the uid of the JVM, so that no other user's JVMs are affected */
	if (setgid(TENANT) < 0 || setuid(TENANT) < 0)
		_exit(1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!write(ready_fd, "", 1);
	for (;;)
		pause();
}

/* ---- a command of its user ------------------------------------------------------------------ */

static void on_sigusr1(int signo)
{
	(void)signo;
	silent = true;
}

/* @starter_fd: a pidfd of the process that started this program. The command may be one that waits
 * for an answer, so its death alone, which that wait delays, must not be what ends the server. */
static void serve_until_it_ends(int fd, int starter_fd)
{
	static uint8_t buf[FUSE_MIN_READ_BUFFER + PAGE];
	const struct sigaction sa = { .sa_handler = on_sigusr1 }; /* poll(2) ends */
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
				{ .fd = starter_fd, .events = POLLIN } };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigaction(SIGUSR1, &sa, NULL);
	/* a process that waits for the end of the command's output must not wait for this one */
	for (int i = 0; i < 3; i++)
		close(i);
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			_exit(0);
		if (read(fd, buf, sizeof(buf)) > 0) {
			if (!silent)
				answer(fd, (const void *)buf);
		} else if (errno != EINTR && errno != ENOENT) {
			_exit(0);
		}
	}
}

static int take_content(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	content_len = (size_t)st.st_size;
	content = mmap(NULL, content_len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return content == MAP_FAILED ? -1 : 0;
}

/* Reads the whole file, so that it is in the page cache. */
static int read_through(const char *fs)
{
	char path[300], page[PAGE];
	ssize_t n = 1;
	int fd;

	snprintf(path, sizeof(path), "%s/any", fs);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0)
		n = read(fd, page, sizeof(page));
	return fd < 0 || n < 0 ? -1 : close(fd);
}

static int become_command(int fd, const char *fs, char **argv)
{
	int starter_fd = (int)syscall(SYS_pidfd_open, getppid(), 0);
	pid_t server = fork();

	if (server == 0)
		serve_until_it_ends(fd, starter_fd);
	close(starter_fd);
	close(fd);
	if (server < 0 || read_through(fs) < 0 || setgid(TENANT) < 0 || setuid(TENANT) < 0)
		return 1;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the uid would clear it */
	(void)execv(argv[0], argv);
	return 1;
}

/* ---- both ----------------------------------------------------------------------------------- */

static int mount_at(const char *dir)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -1;
	snprintf(options, sizeof(options), fuse_options, fd);
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("silent", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	static uint8_t buf[FUSE_MIN_READ_BUFFER + PAGE];
	struct pollfd fds[2];
	int fd, ready[2];
	char byte, at[256];
	pid_t jvm;

	if (argc < 3 || (argc > 3 && take_content(argv[2]) < 0) || pipe2(ready, O_CLOEXEC) < 0)
		return 2;
	snprintf(at, sizeof(at), "%s/fs", argv[1]);
	(void)mkdir(at, 0755);
	fd = mount_at(at);
	if (fd < 0)
		return 77;
	if (argc > 3)
		return become_command(fd, at, argv + 3);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	jvm = fork();
	if (jvm == 0) {
		close(fd);
		be_jvm(at, argv[1], strcmp(argv[2], "root") == 0, ready[1]);
	}
	close(ready[1]);
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = ready[0], .events = POLLIN };
	while (poll(fds, 2, -1) > 0) {
		if (fds[0].revents && read(fd, buf, sizeof(buf)) > 0 && !silent)
			answer(fd, (const void *)buf);
		if (!fds[1].revents)
			continue;
		if (read(ready[0], &byte, 1) != 1)
			return 1; /* it never got ready */
		silent = true;
		fds[1].fd = -1;
		printf("READY %d\n", (int)jvm);
		fflush(stdout);
	}
	return 0;
}
