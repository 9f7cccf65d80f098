/* names_add(), see names.h. */
#include "daemon/names/names.h"

#include <stdlib.h>
#include <string.h>
#include "daemon/discovery/notes.h"
#include "daemon/ground/mem.h"

#define ADD_TEXT(jvm, said, field)                                                 \
	do {                                                                       \
		if (!(jvm)->field[0])                                              \
			memcpy((jvm)->field, (said)->field, sizeof((jvm)->field)); \
	} while (0)

void names_add(struct jvm *jvm, const struct jvm *said)
{
	CLEANUP(freep) struct notes *n = calloc(1, sizeof(*n));
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];
	const char *text = jvm->notes;

	ADD_TEXT(jvm, said, container);
	ADD_TEXT(jvm, said, pod);
	ADD_TEXT(jvm, said, image);
	ADD_TEXT(jvm, said, image_digest);
	allowed_add(&jvm->allowed, &said->allowed);
	if (!n)
		return;
	while (labels_next_text(&text, key, value))
		notes_add(n, key, value);
	text = said->notes;
	while (labels_next_text(&text, key, value))
		notes_add(n, key, value);
	allowed_add(&n->allowed,
		    &jvm->allowed); /* these count even if there was no room for their notes */
	notes_give(n, jvm);
}
