/*
 * See vmclasses.h. The JVM keeps the classes that it knows itself in an array, of which it exports
 * where the first one lies. The one that is wanted is found by its name.
 */
#include "injector/vmclasses.h"

#include <errno.h>
#include <string.h>
#include "daemon/core/mem.h"
#include "injector/vmmemory.h"

#define CLASSES_MAX 300 /* in that array; JDK 28 has a third of that */

enum { NAME, LENGTH, BODY, STATE, FIRST, FIELD_COUNT };
static const struct vmmemory_field wanted[FIELD_COUNT] = {
	[NAME] = { "Klass", "_name", false, 0, 0 },
	[LENGTH] = { "Symbol", "_length", false, 0, 0 },
	[BODY] = { "Symbol", "_body", false, 0, 0 },
	[STATE] = { "InstanceKlass", "_init_state", false, 0, 0 },
	[FIRST] = { "vmClasses", "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]", false,
		    0, 0 },
};

static struct vmmemory memory;

static bool is_called(const struct vmmemory_field *f, uint64_t klass, const char *name)
{
	uint64_t symbol = klass ? vmmemory_word(&memory, klass + f[NAME].offset) : 0;
	char text[64];
	uint16_t length;

	return symbol &&
	       vmmemory_read(&memory, symbol + f[LENGTH].offset, &length, sizeof(length)) &&
	       length == strlen(name) && length <= sizeof(text) &&
	       vmmemory_read(&memory, symbol + f[BODY].offset, text, length) &&
	       memcmp(text, name, length) == 0;
}

static int look(void)
{
	struct vmmemory_field f[FIELD_COUNT];
	int32_t initialised;
	uint8_t state;

	memcpy(f, wanted, sizeof(f));
	vmmemory_fields(&memory, f, FIELD_COUNT);
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (!f[i].found)
			return i == FIRST ? 0 : -EPROTO; /* 8 and 11 have another array */
	if (!vmmemory_constant(&memory, "InstanceKlass::fully_initialized", &initialised))
		return -EPROTO;
	for (uint64_t i = 0; i < CLASSES_MAX; i++) {
		uint64_t klass = vmmemory_word(&memory, f[FIRST].address + 8 * i);

		if (is_called(f, klass, "java/lang/VirtualThread"))
			return vmmemory_read(&memory, klass + f[STATE].offset, &state, 1)
				       ? state >= initialised
				       : -EFAULT;
	}
	return 0; /* before 19 there is none */
}

int vmclasses_virtual_threads(int proc_dfd)
{
	int r = vmmemory_open(proc_dfd, &memory);

	if (r < 0)
		return r;
	r = look();
	vmmemory_close(&memory);
	return r;
}
