/* Ownership helpers: an owning local is tagged CLEANUP(x_freep) and leaves by TAKE_PTR/TAKE_FD. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((__cleanup__(fn)))
#define TAKE(var, empty) \
	({ \
		__auto_type take_ = (var); \
		(var) = (empty); \
		take_; \
	})
#define TAKE_PTR(p) TAKE(p, NULL)
#define TAKE_FD(fd) TAKE(fd, -1)

/* For `struct t *t_free(struct t *)`: defines t_freep() to use with CLEANUP(). */
#define DEFINE_FREEP(type, fn) \
	static inline void fn##p(type **p) \
	{ \
		if (*p) \
			*p = fn(*p); \
	} \
	struct cleanup_semicolon_

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void freep(void *p)
{
	free(*(void **)p);
}

/* Closes @fd unless it is negative; returns -1. close(2) is not retried, because on Linux the
 * descriptor is closed even if it fails with EINTR. */
static inline int fd_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static inline void fd_closep(int *fd)
{
	*fd = fd_close(*fd);
}
