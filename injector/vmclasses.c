/*
 * See vmclasses.h. The JVM keeps the classes that its own code uses in an array and exports the
 * address of the first entry; the class is found by its name.
 */
#include "injector/vmclasses.h"

#include <errno.h>
#include <string.h>
#include "injector/vmtables.h"

#define CLASSES_MAX 300 /* entries of the array that are examined; JDK 28 has a third as many */

enum { NAME, LENGTH, BODY, STATE, FIRST, FIELD_COUNT };
static const struct vmtables_field wanted[FIELD_COUNT] = {
	[NAME] = { .type = "Klass", .field = "_name" },
	[LENGTH] = { .type = "Symbol", .field = "_length" },
	[BODY] = { .type = "Symbol", .field = "_body" },
	[STATE] = { .type = "InstanceKlass", .field = "_init_state" },
	[FIRST] = { .type = "vmClasses",
		    .field = "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]" },
};

static bool vmclasses_is_called(struct vmmemory *m, const struct vmtables_field *f, uint64_t klass,
				const char *name)
{
	uint64_t symbol = klass ? vmmemory_word(m, klass + f[NAME].offset) : 0;
	char text[64];
	uint16_t length;

	return symbol && vmmemory_read(m, symbol + f[LENGTH].offset, &length, sizeof(length)) &&
	       length == strlen(name) && length <= sizeof(text) &&
	       vmmemory_read(m, symbol + f[BODY].offset, text, length) &&
	       memcmp(text, name, length) == 0;
}

static int vmclasses_find_virtual(struct vmmemory *m)
{
	struct vmtables_field f[FIELD_COUNT];
	int32_t initialised;
	uint8_t state;

	memcpy(f, wanted, sizeof(f));
	vmtables_fields(m, f, FIELD_COUNT);
	if (!f[FIRST].found)
		return 0; /* JDK 16 and older have another array, and no virtual threads */
	for (size_t i = 0; i < FIRST; i++)
		if (!f[i].found)
			return -EPROTO;
	if (!vmtables_constant(m, "InstanceKlass::fully_initialized", &initialised))
		return -EPROTO;
	for (uint64_t i = 0; i < CLASSES_MAX; i++) {
		uint64_t klass = vmmemory_word(m, f[FIRST].address + 8 * i);

		if (vmclasses_is_called(m, f, klass, "java/lang/VirtualThread"))
			return vmmemory_read_now(m, klass + f[STATE].offset, &state, 1)
				       ? state >= initialised
				       : -EFAULT;
	}
	return 0; /* no such class: JDK before 19 */
}

int vmclasses_virtual_threads(struct inject *in)
{
	struct vmmemory *m;
	int r = vmmemory_of(in, &m);

	return r < 0 ? r : vmclasses_find_virtual(m);
}
