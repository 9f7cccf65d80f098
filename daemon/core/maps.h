/* /proc/PID/maps, line by line. What is in it is shaped by the process: reads are capped. */
#pragma once

typedef void (*maps_fn)(void *userdata, const char *line);

/*
 * Hand each line, without its newline, to @fn. Lines longer than any path makes them are left out.
 *
 * @pid_dfd: directory of /proc/PID
 *
 * Returns 0, also where it was too long and the end is missing; -errno = it cannot be read.
 */
int maps_each(int pid_dfd, maps_fn fn, void *userdata);
