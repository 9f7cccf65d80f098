/* Makes sure that only one daemon runs: a locked file that contains the holder's pid. */
#pragma once

#include <sys/types.h>

/*
 * Locks @path, which is created with mode 0644 if it is missing, until the fd is closed or the
 * process ends; the file stays. Returns the fd, which the caller owns; -EWOULDBLOCK if another
 * process has the lock (*ret_holder is the pid in the file, 0 if it cannot be read); or -errno.
 */
int lock_take(const char *path, pid_t *ret_holder);
