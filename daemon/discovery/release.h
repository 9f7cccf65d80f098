/*
 * Which JDK it is, before any agent can say so: from the file `release` of its home, two to four
 * directories above libjvm, inside the process' own root.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* "Debian 17.0.15" from the text of a release file; false if it names no version. Pure. */
bool release_parse(const char *text, char *ret, size_t ret_size);
/* @pid_dfd: directory of /proc/PID; @libjvm: path as in maps. "" in @ret if it cannot be told. */
void release_read(int pid_dfd, const char *libjvm, char *ret, size_t ret_size);
/*
 * Whether reading @path may not wait for somebody: false if any file system mounted on the way is
 * one that a container or another machine answers for (FUSE, NFS ...), by the text of
 * /proc/PID/mountinfo. Pure.
 */
bool release_is_local(const char *mountinfo, const char *path);
