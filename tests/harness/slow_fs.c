/*
 * A file system whose files take their time, for the one command that runs on it:
 *
 *   slow_fs DIRECTORY MS COMMAND...
 *
 * mounts it in DIRECTORY, in a mount namespace of its own, and becomes COMMAND. Its root has the
 * file `cached`, 64 MiB of zeros that go through the page cache, a page at a time; every other name
 * is a file of which nothing is cached. Each read, write and fsync that reaches the file system
 * takes MS milliseconds. Who answers are the threads of a child, which ends with the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE	  4096
#define SERVERS	  16 /* requests answered at the same time */
#define CACHED	  2 /* number of its file */
#define FILE_SIZE (64ul << 20)
#define VALID_S	  86400 /* names and attributes stay valid, so the kernel asks for them once */

static const char zeros[PAGE];
static int fuse_fd;
static long delay_ms;

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + len),
				     .error = error,
				     .unique = in->unique };
	struct iovec iov[2] = { { &h, sizeof(h) }, { (void *)(uintptr_t)data, len } };

	(void)!writev(fuse_fd, iov, len ? 2 : 1);
}

static struct fuse_attr attr_of(uint64_t ino)
{
	struct fuse_attr a = { .ino = ino, .nlink = 1, .blksize = PAGE };

	a.mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0777 : S_IFREG | 0666;
	a.size = ino == FUSE_ROOT_ID ? 0 : FILE_SIZE;
	return a;
}

/* A separate inode number for each name, so that two threads with different files do not wait
 * for each other. */
static void reply_lookup(const struct fuse_in_header *in)
{
	const char *name = (const char *)(in + 1);
	struct fuse_entry_out e = { .nodeid = CACHED + 1, .entry_valid = VALID_S };

	for (size_t i = 0; name[i]; i++)
		e.nodeid = e.nodeid * 31 + (uint8_t)name[i];
	if (strcmp(name, "cached") == 0)
		e.nodeid = CACHED;
	e.attr_valid = VALID_S;
	e.attr = attr_of(e.nodeid);
	reply(in, 0, &e, sizeof(e));
}

static void take_time(void)
{
	const struct timespec ts = { delay_ms / 1000, delay_ms % 1000 * 1000000 };

	(void)nanosleep(&ts, NULL);
}

static void answer(const struct fuse_in_header *in)
{
	const struct fuse_read_in *read_in = (const void *)(in + 1);
	const struct fuse_write_in *write_in = (const void *)(in + 1);
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = FUSE_KERNEL_MINOR_VERSION,
				      /* otherwise a thread that waits for a page would wait for
				       * the whole request */
				      .flags = FUSE_ASYNC_READ,
				      .max_background = SERVERS,
				      .congestion_threshold = SERVERS,
				      .max_write = PAGE };
	struct fuse_attr_out attr = { .attr_valid = VALID_S, .attr = attr_of(in->nodeid) };
	struct fuse_open_out open_out = { .open_flags = in->nodeid == CACHED ? FOPEN_KEEP_CACHE
									     : FOPEN_DIRECT_IO };
	struct fuse_write_out write_out = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		reply_lookup(in);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(in, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
		take_time();
		reply(in, 0, zeros, read_in->size < PAGE ? read_in->size : PAGE);
		break;
	case FUSE_WRITE:
		take_time();
		write_out.size = write_in->size;
		reply(in, 0, &write_out, sizeof(write_out));
		break;
	case FUSE_FSYNC:
		take_time();
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

static void *serve(void *unused)
{
	static uint64_t bufs[SERVERS][(FUSE_MIN_READ_BUFFER + PAGE) / sizeof(uint64_t)];
	static int n;
	uint64_t *buf = bufs[__atomic_fetch_add(&n, 1, __ATOMIC_RELAXED)];

	(void)unused;
	for (;;)
		if (read(fuse_fd, buf, sizeof(bufs[0])) > 0)
			answer((const void *)buf);
		else if (errno != EINTR && errno != ENOENT)
			_exit(0);
}

static void serve_until_it_ends(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* a process that waits for the end of the command's output must not wait for this one */
	for (int i = 0; i < 3; i++)
		close(i);
	for (int i = 1; i < SERVERS; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, serve, NULL) != 0)
			_exit(1);
	}
	(void)serve(NULL);
}

static int mount_at(const char *dir)
{
	char options[128];

	fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse_fd < 0)
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fuse_fd);
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	return mount("slow", dir, "fuse", MS_NOSUID | MS_NODEV, options);
}

int main(int argc, char **argv)
{
	pid_t server;

	if (argc < 4)
		return 2;
	delay_ms = strtol(argv[2], NULL, 10);
	if (mount_at(argv[1]) < 0) {
		perror("slow_fs");
		return 77;
	}
	server = fork();
	if (server == 0)
		serve_until_it_ends();
	close(fuse_fd);
	if (server < 0)
		return 1;
	(void)execvp(argv[3], argv + 3);
	return 1;
}
