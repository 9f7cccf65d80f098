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
	/* where the pod's own notes are: "" = unknown */
	char pod_uid[48];
	char sandbox[65]; /* the id of the pod's first container */
};

/*
 * Sets @key to @value, unless it is set already. Left out are notes that runtimes and kubectl keep
 * for themselves, invalid or too long names (labels.h), and notes beyond the bound. The owner's
 * notes (allowed.h) always count.
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

/* @n becomes what is known of @jvm: notes, noted_service, noted_version, allowed. */
void notes_give(const struct notes *n, struct jvm *jvm);
/* Everything that the host's files, below @root_dfd, contain about the container of @jvm, into
 * @jvm: notes, noted_service, noted_version, allowed. */
void notes_read(int root_dfd, struct jvm *jvm);
