/*
 * Notes: annotations and labels that whoever deployed a container, or its pod, gave it, as files of
 * the runtime and of the kubelet have them. Pure, but for notes_read(); texts are NUL-terminated.
 */
#pragma once

#include <stddef.h>
#include "daemon/core/labels.h"
#include "daemon/discovery/allowed.h"
#include "daemon/discovery/jvm.h"

struct notes {
	struct labels list; /* at most JVM_NOTES_SIZE bytes */
	struct allowed allowed;
	/* where the pod's own are: "" = not said */
	char pod_uid[48];
	char sandbox[65]; /* the id of the pod's first container */
};

/*
 * @key has @value, unless it has one already. What runtimes and kubectl note for themselves is left
 * out; so is what is no name or longer than labels.h allows, and what finds no room. The owner's
 * words (allowed.h) always count.
 */
void notes_add(struct notes *n, const char *key, const char *value);
/* @text: config.json of a bundle. CRI-O has the pod's labels and annotations in that of its
 * sandbox.
 */
void notes_parse_bundle(struct notes *n, const char *text, size_t len);
/* @text: Docker's config.v2.json. cri-dockerd has the pod's in that of its sandbox. */
void notes_parse_docker(struct notes *n, const char *text, size_t len);
/* @text: a file of a downward-API volume, `key="value"` a line, quoted as by Go's strconv.Quote. */
void notes_parse_downward(struct notes *n, const char *text, size_t len);

/* All that the host's files, below @root_dfd, have of the container of @jvm, into @jvm: notes,
 * noted_service, noted_version, allowed. */
void notes_read(int root_dfd, struct jvm *jvm);
