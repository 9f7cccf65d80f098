/* One daemon a machine: a locked file with the holder's pid in it. */
#pragma once

#include <sys/types.h>

/*
 * Lock @path (made if it is not there, 0644) for this process until the fd is closed; the lock goes
 * with the process, however it ends, and the file stays. Returns the fd, -EWOULDBLOCK when another
 * process holds it (*ret_holder is its pid as written there, 0 if unreadable), or -errno.
 */
int lock_take(const char *path, pid_t *ret_holder);
