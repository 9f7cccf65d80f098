/*
 * Finds the container of a process: the id from its cgroup, and the names from files that the
 * runtimes keep on the host. No API server and no runtime's socket is needed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "daemon/discovery/jvm.h"

#define CONTAINER_ID_SIZE sizeof(((struct jvm *)0)->container_id)

/* Finds the owner of a cgroup. @names: the hierarchy as in /proc/PID/cgroup, "" for version 2;
 * @path: the group's path, @len bytes. Returns 0 (root) also if the owner cannot be determined. */
struct container_owner {
	uid_t (*uid_of)(void *userdata, const char *names, size_t names_len, const char *path,
			size_t len);
	void *userdata;
};

/*
 * The innermost container id in the text of /proc/PID/cgroup: 64 hex digits, or 32 and a number
 * (Fargate). Names below a group that does not belong to root, or below user@UID.service, are
 * ignored: any user could have invented them. Only @owner is called; NULL = all groups except user@
 * belong to root.
 */
bool container_id_from_cgroup(const char *cgroup, const struct container_owner *owner,
			      char ret[CONTAINER_ID_SIZE]);

/* Read the names from each runtime's file. @text: JSON, @len bytes. false = no names. Pure. */
bool container_parse_oci(const char *text, size_t len, struct jvm *ret); /* containerd, CRI-O */
bool container_parse_docker(const char *text, size_t len, struct jvm *ret); /* config.v2.json */
bool container_parse_storage(const char *text, size_t len, struct jvm *ret); /* podman's list */
/* The pid of the container's first process, from runc's state.json or crun's status; 0 = none. */
pid_t container_parse_state(const char *text, size_t len);
/* The directory of the bundle, from the same files. */
bool container_parse_bundle(const char *text, size_t len, char *ret, size_t ret_size);

/*
 * The config.json that the container of @jvm was made from, malloc'ed; NULL if the JVM is in no
 * container, or if no file of a runtime leads to it. @proc_dfd as below.
 */
char *container_bundle(int proc_dfd, const struct jvm *jvm, size_t *ret_len);

/*
 * Fills in container_id, container, pod, image and its digest, and the notes (notes.h) of
 * @ret->pid, as far as they can be determined.
 *
 * @proc_dfd: directory of /proc; the host's files are those below its 1/root, so it does not matter
 * which container the daemon itself is in
 * @pid_dfd: directory of /proc/PID
 */
void container_describe(int proc_dfd, int pid_dfd, struct jvm *ret);
