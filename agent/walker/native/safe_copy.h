/*
 * Copies memory that another thread may unmap at any moment (dlclose), by writing it to a pipe: if
 * the memory is gone, write() fails with EFAULT where a load would raise SIGSEGV. No seccomp
 * profile forbids writing to a pipe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct safe_copy {
	int fd[2];
};

int safe_copy_open(struct safe_copy *ret);
void safe_copy_close(struct safe_copy *copy);
/* 0, or -EFAULT if any of the bytes cannot be read. */
int safe_copy(struct safe_copy *copy, void *to, uint64_t address, size_t len);
