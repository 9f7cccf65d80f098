/*
 * Finds the JDK of a JVM before an agent can report it: from the file `release` in its home, two to
 * four directories above libjvm, inside the root of the process. Its build is identified by the
 * size and date of libjvm, which are the same on every host for the same image layer or package.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "daemon/discovery/jvm.h"

/* "Debian 17.0.15" from the text of a release file; false if it names no version. Pure. */
bool release_parse(const char *text, char *ret, size_t ret_size);
/* Fills in jdk and libjvm_build of @ret; "" if unknown. @pid_dfd: directory of /proc/PID;
 * @libjvm: path as in maps. */
void release_read(int pid_dfd, const char *libjvm, struct jvm *ret);
/*
 * Can @path be read without waiting for others? false if any file system on the way is served by a
 * process or another machine (FUSE, NFS ...), according to the text of /proc/PID/mountinfo. Pure.
 */
bool release_is_local(const char *mountinfo, const char *path);
