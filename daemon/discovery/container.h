/*
 * Which container a process is in: the id from its cgroup, the names from the files that the
 * runtimes themselves keep on the host. No API server, no runtime socket.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "daemon/discovery/jvm.h"

#define CONTAINER_ID_SIZE sizeof(((struct jvm *)0)->container_id)

/*
 * The innermost container id in the text of /proc/PID/cgroup: 64 hex digits, or 32 and a number
 * (Fargate). Pure.
 */
bool container_id_from_cgroup(const char *cgroup, char ret[CONTAINER_ID_SIZE]);

/* Where the names stand in each runtime's file; pure, @text of @len bytes is JSON. */
bool container_parse_oci(const char *text, size_t len, struct jvm *ret); /* containerd, CRI-O */
bool container_parse_docker(const char *text, size_t len, struct jvm *ret); /* config.v2.json */
bool container_parse_storage(const char *text, size_t len, struct jvm *ret); /* podman's list */
/* runc's state.json, crun's status: pid of the container's first process, 0 if there is none. */
pid_t container_parse_state(const char *text, size_t len);
/* Of the same files: the directory of its bundle. */
bool container_parse_bundle(const char *text, size_t len, char *ret, size_t ret_size);

/*
 * The config.json that the container of @jvm was made from, malloc'ed; NULL if it is in none, or no
 * file of a runtime's tells. @proc_dfd as below.
 */
char *container_bundle(int proc_dfd, const struct jvm *jvm, size_t *ret_len);

/*
 * Fill in container_id, container, pod, image and its digest of @ret->pid, as far as they can be
 * told.
 *
 * @proc_dfd: directory of /proc; the host's files are those below its 1/root, so that it does not
 *            matter which container the daemon itself is in
 * @pid_dfd:  directory of /proc/PID
 */
void container_describe(int proc_dfd, int pid_dfd, struct jvm *ret);
