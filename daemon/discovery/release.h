/*
 * The JDK of a JVM, before any agent can report it: from the file `release` of its home, two to
 * four directories above libjvm, inside the process' own root. And the build of it, by libjvm's
 * size and date, which layers of images and packages keep on every host.
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
 * Whether @path can be read without waiting for somebody: false if any file system mounted on the
 * way is served by a container or another machine (FUSE, NFS ...), by the text of
 * /proc/PID/mountinfo. Pure.
 */
bool release_is_local(const char *mountinfo, const char *path);
