/*
 * The answers of a container runtime: the first byte selects the request, and whether the HTTP/2
 * frames around the message are fuzzed too. Texts are terminated, an id is valid, and the result
 * fits a JVM.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/names/cri.h"
#include "daemon/names/frames.h"
#include "daemon/names/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const struct names_answer *a)
{
	static struct jvm jvm;
	struct label l;
	const char *text;

	assert(memchr(a->sandbox, '\0', sizeof(a->sandbox)));
	assert(strspn(a->sandbox, "0123456789abcdef") == strlen(a->sandbox));
	assert(memchr(a->jvm.container, '\0', sizeof(a->jvm.container)));
	assert(memchr(a->jvm.pod, '\0', sizeof(a->jvm.pod)));
	assert(memchr(a->jvm.image, '\0', sizeof(a->jvm.image)));
	assert(a->jvm.image_digest[0] == '\0' || strlen(a->jvm.image_digest) == 71);
	memset(&jvm, 0, sizeof(jvm));
	strcpy(jvm.notes, "team=shop\n");
	names_add(&jvm, &a->jvm);
	names_add(&jvm, &a->jvm);
	assert(strlen(jvm.notes) <= JVM_NOTES_SIZE - 1);
	assert(labels_is(jvm.notes, "team", "shop"));
	for (text = jvm.notes; labels_next(&text, &l);)
		assert(l.key_len < LABEL_KEY_SIZE && l.value_len < LABEL_VALUE_SIZE);
	assert(!a->jvm.allowed.no || jvm.allowed.no);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct names_answer a;
	enum warden_names what;
	uint8_t *body;
	size_t len = 0;

	if (size < 1)
		return 0;
	what = data[0] & 1 ? WARDEN_NAMES_SANDBOX : WARDEN_NAMES_CONTAINER;
	body = malloc(size);
	memset(&a, 0, sizeof(a));
	if (data[0] & 2) {
		cri_read(what, data + 1, size - 1, &a);
		check_answer(&a);
	} else if (frames_read(data + 1, size - 1, body, &len) == 1) {
		assert(len + FRAMES_HEAD < size);
		cri_read(what, body + FRAMES_HEAD, len, &a);
		check_answer(&a);
	}
	free(body);
	return 0;
}
