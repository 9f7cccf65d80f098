/*
 * Notes: annotations and labels of a container or its pod, from files of the runtime and of the
 * kubelet. Pure, except for notes_read(); texts are NUL-terminated.
 */
#pragma once

#include <stddef.h>
#include "daemon/core/labels.h"
#include "daemon/discovery/allowed.h"
#include "daemon/discovery/jvm.h"

struct notes {
	struct labels list; /* at most JVM_NOTES_SIZE bytes */
	struct allowed allowed;
	/* by which the pod's own notes are found; "" = unknown */
	char pod_uid[48];
	char sandbox[65]; /* the id of the pod's sandbox container */
};

/*
 * Sets @key to @value, unless it is set already. Notes that runtimes and kubectl keep for
 * themselves are left out, as well as invalid names (labels.h) and notes for which there is no
 * room. Notes of allowed.h always count.
 */
void notes_add(struct notes *n, const char *key, const char *value);
/* @text: config.json of a bundle. CRI-O keeps the pod's labels and annotations in that of its
 * sandbox. */
void notes_parse_bundle(struct notes *n, const char *text, size_t len);
/* @text: Docker's config.v2.json. cri-dockerd keeps the pod's notes in that of its sandbox. */
void notes_parse_docker(struct notes *n, const char *text, size_t len);
/* @text: a file of a downward-API volume, with lines `key="value"`, quoted as by Go's
 * strconv.Quote. */
void notes_parse_downward(struct notes *n, const char *text, size_t len);

/* Copies @n to @jvm: notes, noted_service, noted_version, allowed. */
void notes_give(const struct notes *n, struct jvm *jvm);
/* Reads the notes of @jvm's container from the host's files, below @root_dfd, and fills in notes,
 * noted_service, noted_version and allowed. */
void notes_read(int root_dfd, struct jvm *jvm);
