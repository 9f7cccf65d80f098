/* Shared by container.c, bundle.c and notes_read.c: reads files of the host. */
#pragma once

#include <dirent.h>
#include "daemon/discovery/container.h"

/* Opens the host's root (O_PATH), even if the daemon runs in a container; -1 = it cannot. */
int container_host_root(int proc_dfd);
/* Reads a whole file; malloc'ed and NUL-terminated. NULL if it is missing, not a regular file, or
 * too large. */
char *container_read_file(int root_dfd, const char *path, size_t *ret_len);
DIR *container_open_directory(int root_dfd, const char *path);
/* Directories where containerd keeps the bundles of running containers, <namespace>/<id>/ below
 * each; NULL-terminated. */
extern const char *const container_tasks[];
/* The config.json of the container with this id, as for container_bundle(). */
char *container_bundle_by_id(int root_dfd, const char *id, size_t *ret_len);
/* Is @pid the container's first process @init, or in the same pid namespace, unless that is the
 * host's? */
bool container_belongs_to(int proc_dfd, pid_t pid, pid_t init);
