/* See cri.h. */
#include "daemon/names/cri.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cri.pb-c.h"
#include "daemon/discovery/notes.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

#define DIGEST "sha256:"
#define HEX    "0123456789abcdef"

static void cri_copy(char *ret, size_t size, const char *text)
{
	utf8_copy(ret, size, text ? text : "", text ? strlen(text) : 0);
}

/* Copies the id of the pod's sandbox, which the next question asks about. Anything but hex digits
 * is left out. */
static void cri_copy_id(char ret[WARDEN_NAMES_ID_SIZE], const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len && len < WARDEN_NAMES_ID_SIZE && strspn(text, HEX) == len)
		memcpy(ret, text, len + 1);
}

/* Copies the digest of "docker.io/library/x@sha256:..." or "sha256:..."; CRI-O has only digits. */
static void cri_copy_digest(char *ret, size_t size, const char *text)
{
	const char *at = text ? strstr(text, DIGEST) : NULL;
	const char *digits = at ? at + strlen(DIGEST) : text ? text : "";

	if (strspn(digits, HEX) == 64 && !digits[64])
		snprintf(ret, size, DIGEST "%s", digits);
}

/* Copies the image's name, if there is one; an id is not a name. */
static void cri_copy_image(char *ret, size_t size, const Kindling__Cri__ImageSpec *image)
{
	const char *name = image ? image->user_specified_image : NULL;

	if (image && (!name || !*name))
		name = image->image;
	if (name && strncmp(name, DIGEST, strlen(DIGEST)) != 0 && strspn(name, HEX) != 64)
		cri_copy(ret, size, name);
}

static void cri_add_notes(struct notes *n, Kindling__Cri__Entry **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i]->key && list[i]->value)
			notes_add(n, list[i]->key, list[i]->value);
}

static void cri_read_container(const uint8_t *message, size_t len, struct notes *n,
			       struct names_answer *ret)
{
	Kindling__Cri__ListContainersResponse *m =
		kindling__cri__list_containers_response__unpack(NULL, len, message);
	const Kindling__Cri__Container *c = m && m->n_containers == 1 ? m->containers[0] : NULL;

	ret->result = !m ? -EPROTO : !c ? -ENOENT : 0;
	if (c) {
		cri_copy_id(ret->sandbox, c->pod_sandbox_id);
		if (c->metadata)
			cri_copy(ret->jvm.container, sizeof(ret->jvm.container), c->metadata->name);
		cri_copy_image(ret->jvm.image, sizeof(ret->jvm.image), c->image);
		cri_copy_digest(ret->jvm.image_digest, sizeof(ret->jvm.image_digest), c->image_ref);
		cri_add_notes(n, c->labels, c->n_labels);
		cri_add_notes(n, c->annotations, c->n_annotations);
	}
	if (m)
		kindling__cri__list_containers_response__free_unpacked(m, NULL);
}

static void cri_read_sandbox(const uint8_t *message, size_t len, struct notes *n,
			     struct names_answer *ret)
{
	Kindling__Cri__ListPodSandboxResponse *m =
		kindling__cri__list_pod_sandbox_response__unpack(NULL, len, message);
	const Kindling__Cri__PodSandbox *s = m && m->n_items == 1 ? m->items[0] : NULL;
	char pod[sizeof(ret->jvm.pod)];

	ret->result = !m ? -EPROTO : !s ? -ENOENT : 0;
	if (s) {
		if (s->metadata && s->metadata->namespace_ && *s->metadata->namespace_ &&
		    s->metadata->name && *s->metadata->name) {
			snprintf(pod, sizeof(pod), "%.126s/%.126s", s->metadata->namespace_,
				 s->metadata->name);
			cri_copy(ret->jvm.pod, sizeof(ret->jvm.pod), pod);
		}
		cri_add_notes(n, s->labels, s->n_labels);
		cri_add_notes(n, s->annotations, s->n_annotations);
	}
	if (m)
		kindling__cri__list_pod_sandbox_response__free_unpacked(m, NULL);
}

void cri_read(enum warden_names what, const uint8_t *message, size_t len, struct names_answer *ret)
{
	CLEANUP(freep) struct notes *n = calloc(1, sizeof(*n));

	if (!n) {
		ret->result = -ENOMEM;
		return;
	}
	if (what == WARDEN_NAMES_CONTAINER)
		cri_read_container(message, len, n, ret);
	else
		cri_read_sandbox(message, len, n, ret);
	memcpy(ret->jvm.notes, n->list.text, n->list.len + 1); /* notes_add() limited the length */
	ret->jvm.allowed = n->allowed;
}
