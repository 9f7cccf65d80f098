/* Reads /proc/PID/maps line by line. The process can shape the content, so reads are capped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* @line: without its newline; may be written to. */
typedef void (*maps_fn)(void *userdata, char *line);

/*
 * Passes each line to @fn, except lines that are too long for any path.
 *
 * @pid_dfd: directory of /proc/PID
 *
 * Returns 0, also if the file is too long and its end is missing; -errno = it cannot be read.
 */
int maps_each(int pid_dfd, maps_fn fn, void *userdata);

/* The same for text that comes in pieces of any size. Zeroed at first. Pure. */
struct maps_lines {
	char line[4096 + 128];
	size_t len;
	bool skip; /* the line is too long: ignore the rest of it */
};
void maps_feed(struct maps_lines *m, const char *text, size_t len, maps_fn fn, void *userdata);
