/* Between container.c, bundle.c and notes_read.c: files of the host. */
#pragma once

#include <dirent.h>
#include "daemon/discovery/container.h"

/* The host's root, even if we run in a container ourselves; O_PATH, or -1. */
int container_host_root(int proc_dfd);
/* A whole file, malloc'ed and NUL-terminated; NULL if it is missing, not a file, or too large. */
char *container_read_file(int root_dfd, const char *path, size_t *ret_len);
DIR *container_open_directory(int root_dfd, const char *path);
/* Directories where containerd keeps the bundles of running containers, <namespace>/<id>/ below
 * each; NULL-terminated. */
extern const char *const container_tasks[];
/* The config.json of the container with this id, as for container_bundle(). */
char *container_bundle_by_id(int root_dfd, const char *id, size_t *ret_len);
/* Whether @pid is the container's first process or lives in the pid namespace that this process
 * made. */
bool container_belongs_to(int proc_dfd, pid_t pid, pid_t init);
