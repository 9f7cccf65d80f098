/*
 * The values of a JVM's flags, read from its memory: the one place where all sources of options
 * meet (command line, variables, @files, -XX:Flags, the code of a program that made its own JVM).
 */
#include "injector/vmflags.h"

#include <errno.h>
#include <string.h>
#include "injector/vmmemory.h"

#define FLAGS_MAX 10000

/* ---- HotSpot's tables ----------------------------------------------------------------------- */

struct flag_table {
	uint64_t first, count, size;
	uint64_t name_at, address_at; /* offsets in a flag */
};

/* "Flag" in JDK 8, "JVMFlag" later. */
static bool is_flag_type(struct vmmemory *m, uint64_t name)
{
	return vmmemory_is(m, name, "JVMFlag") || vmmemory_is(m, name, "Flag");
}

static bool read_structs(struct vmmemory *m, struct flag_table *t)
{
	uint64_t row = vmmemory_variable(m, "gHotSpotVMStructs");
	uint64_t stride = vmmemory_variable(m, "gHotSpotVMStructEntryArrayStride");
	uint64_t type_at = vmmemory_variable(m, "gHotSpotVMStructEntryTypeNameOffset");
	uint64_t field_at = vmmemory_variable(m, "gHotSpotVMStructEntryFieldNameOffset");
	uint64_t offset_at = vmmemory_variable(m, "gHotSpotVMStructEntryOffsetOffset");
	uint64_t address_at = vmmemory_variable(m, "gHotSpotVMStructEntryAddressOffset");
	int found = 0;

	if (!row || !stride)
		return false;
	for (int i = 0; i < VMMEMORY_ROWS && found < 4; i++, row += stride) {
		uint64_t type = vmmemory_word(m, row + type_at),
			 field = vmmemory_word(m, row + field_at);

		if (!type)
			break;
		if (!is_flag_type(m, type))
			continue;
		found++;
		if (vmmemory_is(m, field, "flags"))
			t->first = vmmemory_word(m, vmmemory_word(m, row + address_at));
		else if (vmmemory_is(m, field, "numFlags"))
			t->count = vmmemory_word(m, vmmemory_word(m, row + address_at));
		else if (vmmemory_is(m, field, "_name"))
			t->name_at = vmmemory_word(m, row + offset_at);
		else if (vmmemory_is(m, field, "_addr"))
			t->address_at = vmmemory_word(m, row + offset_at);
		else
			found--;
	}
	return found == 4 && t->first && t->count && t->count <= FLAGS_MAX;
}

static bool read_size(struct vmmemory *m, struct flag_table *t)
{
	uint64_t row = vmmemory_variable(m, "gHotSpotVMTypes");
	uint64_t stride = vmmemory_variable(m, "gHotSpotVMTypeEntryArrayStride");
	uint64_t name_at = vmmemory_variable(m, "gHotSpotVMTypeEntryTypeNameOffset");
	uint64_t size_at = vmmemory_variable(m, "gHotSpotVMTypeEntrySizeOffset");

	for (int i = 0; row && stride && i < VMMEMORY_ROWS; i++, row += stride) {
		uint64_t name = vmmemory_word(m, row + name_at);

		if (!name)
			return false;
		if (is_flag_type(m, name)) {
			t->size = vmmemory_word(m, row + size_at);
			return t->size > 0 && t->size < 1024;
		}
	}
	return false;
}

static void read_flags(struct vmmemory *m, const struct flag_table *t, struct vmflag *flags,
		       size_t n)
{
	for (uint64_t i = 0; i < t->count; i++) {
		uint64_t flag = t->first + i * t->size;
		uint64_t name = vmmemory_word(m, flag + t->name_at);

		for (size_t k = 0; name && k < n; k++)
			if (vmmemory_is(m, name, flags[k].name)) {
				uint64_t at = vmmemory_word(m, flag + t->address_at);

				flags[k].found =
					vmmemory_read(m, at, &flags[k].value, flags[k].size);
			}
	}
}

static struct vmmemory memory;

int vmflags_read(int proc_dfd, struct vmflag *flags, size_t n)
{
	int r = vmmemory_open(proc_dfd, &memory);
	struct flag_table t = { 0 };

	if (r < 0)
		return r;
	if (read_structs(&memory, &t) && read_size(&memory, &t))
		read_flags(&memory, &t, flags, n);
	else
		r = -EPROTO;
	vmmemory_close(&memory);
	return r;
}

int vmflags_text(int proc_dfd, const char *name, char *ret, size_t size)
{
	struct vmflag flag = { name, sizeof(uint64_t), false, 0 };
	int r = vmflags_read(proc_dfd, &flag, 1);

	memset(ret, 0, size);
	if (r < 0 || !flag.found || !flag.value)
		return r;
	r = vmmemory_open(proc_dfd, &memory);
	if (r < 0)
		return r;
	/* one that lies at the edge of its mapping is taken for none */
	if (!vmmemory_read(&memory, flag.value, ret, size - 1))
		memset(ret, 0, size);
	vmmemory_close(&memory);
	return 0;
}

int vmflags_version(int proc_dfd, struct jdk_version *ret)
{
	static const char type[] = "Abstract_VM_Version";
	struct vmmemory_field fields[] = {
		{ type, "_vm_major_version", false, 0, 0 },
		{ type, "_vm_minor_version", false, 0, 0 },
		{ type, "_vm_security_version", false, 0, 0 },
	};
	int r = vmmemory_open(proc_dfd, &memory);
	int32_t values[ARRAY_SIZE(fields)];

	if (r < 0)
		return r;
	vmmemory_fields(&memory, fields, ARRAY_SIZE(fields));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i].found &=
			vmmemory_read(&memory, fields[i].address, &values[i], sizeof(values[i]));
	vmmemory_close(&memory);
	if (!fields[0].found || !fields[1].found)
		return -EPROTO;
	*ret = jdk_version_of(values[0], values[1], fields[2].found ? &values[2] : NULL);
	return 0;
}
