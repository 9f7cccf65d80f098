/*
 * A pipe that does not answer: a write from a page that is missing waits until the page fault is
 * served, and holds the pipe's mutex meanwhile. A container can do the same by other means (FUSE,
 * holes punched in a file); this one needs root, and lasts as long as the test wants.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct held_pipe {
	int uffd, fd;
	char *page; /* NULL = not held */
	pthread_t writer;
};

/* Holds @fd by such a write; false = not permitted on this machine. */
bool held_pipe_begin(struct held_pipe *h, int fd);
void held_pipe_end(struct held_pipe *h);
