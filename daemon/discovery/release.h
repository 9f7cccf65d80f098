/*
 * Which JDK it is, before any agent can say so: from the file `release` of its home, two to four
 * directories above libjvm, inside the process' own root. And which build of it, by libjvm's size
 * and date: layers of images and packages keep both, on every host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "daemon/discovery/jvm.h"

/* "Debian 17.0.15" from the text of a release file; false if it names no version. Pure. */
bool release_parse(const char *text, char *ret, size_t ret_size);
/* Fill in jdk and libjvm_build of @ret; "" if they cannot be told. @pid_dfd: directory of
 * /proc/PID;
 * @libjvm: path as in maps. */
void release_read(int pid_dfd, const char *libjvm, struct jvm *ret);
/*
 * Whether reading @path may not wait for somebody: false if any file system mounted on the way is
 * one that a container or another machine answers for (FUSE, NFS ...), by the text of
 * /proc/PID/mountinfo. Pure.
 */
bool release_is_local(const char *mountinfo, const char *path);
