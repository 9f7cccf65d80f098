/* See held_pipe.h. */
#include "tests/unit/held_pipe.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES 4096

static void *write_page(void *userdata)
{
	const struct held_pipe *h = userdata;

	(void)!write(h->fd, h->page, BYTES);
	return NULL;
}

bool held_pipe_begin(struct held_pipe *h, int fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	h->fd = fd;
	h->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (h->uffd < 0)
		return false;
	h->page = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)h->page;
	range.range.len = BYTES;
	if (ioctl(h->uffd, UFFDIO_API, &api) == 0 && ioctl(h->uffd, UFFDIO_REGISTER, &range) == 0 &&
	    pthread_create(&h->writer, NULL, write_page, h) == 0)
		return true;
	munmap(h->page, BYTES);
	h->page = NULL;
	close(h->uffd);
	return false;
}

void held_pipe_end(struct held_pipe *h)
{
	if (!h->page)
		return;
	close(h->uffd); /* the page is mapped and full of zeros now */
	pthread_join(h->writer, NULL);
	munmap(h->page, BYTES);
	h->page = NULL;
}
