/*
 * A pipe that does not answer: a write from a page that is not there waits for whoever answers the
 * page fault, and holds the pipe's mutex meanwhile. A tenant has other ways to the same (FUSE,
 * holes punched in a file); this one needs root, and holds for as long as the test likes.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct held_pipe {
	int uffd, fd;
	char *page; /* NULL = not held */
	pthread_t writer;
};

/* Write into @fd; false: not permitted here. */
bool held_pipe_begin(struct held_pipe *h, int fd);
void held_pipe_end(struct held_pipe *h);
