/*
 * The library and the two FIFOs in /tmp/kindling/<version>/ of the target. The library's name carries
 * the hash of its content: a new file at an old path would give glibc's old mapping. A file that is
 * there already is compared byte by byte, never trusted.
 */
#include "injector/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define LIBRARY_BYTES_MAX (16u << 20)

struct content {
	uint8_t *bytes;
	size_t len;
	uint64_t hash;
};

static int read_content(int fd, struct content *c)
{
	struct stat st;
	uint64_t h = 0xcbf29ce484222325ull;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > LIBRARY_BYTES_MAX)
		return -EINVAL;
	c->len = (size_t)st.st_size;
	c->bytes = malloc(c->len);
	if (!c->bytes)
		return -ENOMEM;
	if (pread(fd, c->bytes, c->len, 0) != (ssize_t)c->len)
		return -EIO;
	for (size_t i = 0; i < c->len; i++)
		h = (h ^ c->bytes[i]) * 0x100000001b3ull;
	c->hash = h;
	return 0;
}

static bool same_content(const struct inject *in, int dfd, const char *name, const struct content *c)
{
	CLEANUP(fd_closep) int fd = files_open(in, dfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	CLEANUP(freep) uint8_t *buf = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size != c->len ||
	    st.st_uid != in->uid)
		return false;
	buf = malloc(c->len);
	return buf && pread(fd, buf, c->len, 0) == (ssize_t)c->len &&
	       memcmp(buf, c->bytes, c->len) == 0;
}

static int write_library(const struct inject *in, struct placement *p, const struct content *c)
{
	CLEANUP(fd_closep) int fd = -1;
	char temp[80];
	size_t done = 0;
	int r = 0;

	if (same_content(in, p->dir_dfd, p->library, c))
		return 0;
	snprintf(temp, sizeof(temp), ".%s.tmp", p->library);
	(void)unlinkat(p->dir_dfd, temp, 0);
	fd = files_open(in, p->dir_dfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0500);
	if (fd < 0)
		return fd;
	while (done < c->len && r == 0) {
		ssize_t n = write(fd, c->bytes + done, c->len - done);

		if (n < 0)
			r = -errno;
		else
			done += (size_t)n;
	}
	if (r == 0 && fchmod(fd, 0555) < 0)
		r = -errno;
	if (r == 0 && renameat(p->dir_dfd, temp, p->dir_dfd, p->library) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(p->dir_dfd, temp, 0);
	else
		p->made_library = true;
	return r;
}

static int make_fifo(const struct inject *in, const struct placement *p, const char *name, int flags,
		     int *ret)
{
	struct stat st;
	int fd;

	if (mkfifoat(p->dir_dfd, name, 0600) < 0)
		return -errno;
	fd = files_open(in, p->dir_dfd, name, flags | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	/* between the two calls the target may have put something else there */
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
		fd_close(fd);
		return -EPROTO;
	}
	*ret = fd;
	return 0;
}

static int place_all(const struct inject *in, const struct content *c, bool quiet, size_t pipe_bytes,
		     struct placement *p)
{
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return fault_set(in->fault, EIO, FAULT_PLACEMENT, "no random number");
	snprintf(p->dir, sizeof(p->dir), "/tmp/kindling/%s", KINDLING_VERSION);
	snprintf(p->library, sizeof(p->library), "libkindling-%016llx%s.so",
		 (unsigned long long)c->hash, quiet ? "" : "-loud");
	snprintf(p->events, sizeof(p->events), "events-%016llx", (unsigned long long)random);
	snprintf(p->control, sizeof(p->control), "control-%016llx", (unsigned long long)random);
	p->dir_dfd = files_mkdirs(in, p->dir);
	if (p->dir_dfd < 0)
		return fault_set(in->fault, -p->dir_dfd, FAULT_PLACEMENT, "make %s in the target: ", p->dir);
	r = write_library(in, p, c);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT, "write %s/%s in the target: ", p->dir,
				 p->library);
	r = make_fifo(in, p, p->events, O_RDONLY, &p->events_fd);
	if (r == 0)
		r = make_fifo(in, p, p->control, O_RDWR, &p->control_fd);
	if (r < 0)
		return fault_set(in->fault, -r, FAULT_PLACEMENT, "make FIFOs in %s of the target: ", p->dir);
	/* the first opener is charged for the pages: us, not the target's uid */
	(void)fcntl(p->events_fd, F_SETPIPE_SZ, (int)pipe_bytes);
	return 0;
}

int place(const struct inject *in, int library_fd, bool quiet, size_t pipe_bytes,
	  struct placement *ret)
{
	struct content c = { 0 };
	int r = read_content(library_fd, &c);

	if (r < 0) {
		r = fault_set(in->fault, -r, FAULT_PLACEMENT, "read the agent's library: ");
	} else {
		mode_t old = umask(0);

		r = files_as_target(in);
		if (r < 0)
			r = fault_set(in->fault, -r, FAULT_CREDENTIALS, "take the target's fsuid: ");
		else
			r = place_all(in, &c, quiet, pipe_bytes, ret);
		files_as_root();
		(void)umask(old);
	}
	free(c.bytes);
	return r;
}

static void remove_dirs(const struct inject *in)
{
	CLEANUP(fd_closep) int tmp = files_open(in, in->root_dfd, "tmp", O_PATH | O_DIRECTORY, 0);
	CLEANUP(fd_closep) int dir = files_open(in, in->root_dfd, "tmp/kindling",
						O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

	/* only when empty: another attempt or another version may be there */
	if (dir >= 0)
		(void)unlinkat(dir, KINDLING_VERSION, AT_REMOVEDIR);
	if (tmp >= 0)
		(void)unlinkat(tmp, "kindling", AT_REMOVEDIR);
}

void place_remove(const struct inject *in, struct placement *p)
{
	if (p->dir_dfd < 0 || files_as_target(in) < 0)
		return;
	if (p->events[0])
		(void)unlinkat(p->dir_dfd, p->events, 0);
	if (p->control[0])
		(void)unlinkat(p->dir_dfd, p->control, 0);
	if (p->library[0])
		(void)unlinkat(p->dir_dfd, p->library, 0);
	remove_dirs(in);
	files_as_root();
	p->dir_dfd = fd_close(p->dir_dfd);
}

void place_cleanup(const struct inject *in)
{
	CLEANUP(fd_closep) int dfd = -1;
	DIR *dir;
	struct dirent *e;

	if (files_as_target(in) < 0)
		return;
	dfd = files_open(in, in->root_dfd, "tmp/kindling/" KINDLING_VERSION,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	dir = dfd >= 0 ? fdopendir(dfd) : NULL;
	for (int i = 0; dir && i < 1000 && (e = readdir(dir)); i++) {
		if (strncmp(e->d_name, "events-", 7) == 0 || strncmp(e->d_name, "control-", 8) == 0 ||
		    strncmp(e->d_name, "libkindling-", 12) == 0 ||
		    strncmp(e->d_name, ".libkindling-", 13) == 0)
			(void)unlinkat(dfd, e->d_name, 0);
	}
	remove_dirs(in);
	if (dir) {
		closedir(dir);
		TAKE_FD(dfd);
	}
	files_as_root();
}
