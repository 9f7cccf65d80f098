/*
 * Reads the values of a JVM's flags from its memory, where the options of all sources are combined:
 * command line, environment variables, @files, -XX:Flags, and the code of a program that embeds the
 * JVM.
 */
#include "injector/vmflags.h"

#include <errno.h>
#include <string.h>
#include "injector/vmtables.h"

#define FLAGS_MAX 10000

/* ---- the array of flags --------------------------------------------------------------------- */

struct flags {
	uint64_t first, count, size;
	uint64_t name_at, address_at; /* offsets in a flag */
};

/* @type: "JVMFlag", which is "Flag" in JDK 8 */
static bool find_flags(struct vmmemory *m, const char *type, struct flags *ret)
{
	struct vmtables_field f[] = {
		{ .type = type, .field = "flags" },
		{ .type = type, .field = "numFlags" },
		{ .type = type, .field = "_name" },
		{ .type = type, .field = "_addr" },
	};

	vmtables_fields(m, f, ARRAY_SIZE(f));
	for (size_t i = 0; i < ARRAY_SIZE(f); i++)
		if (!f[i].found)
			return false;
	*ret = (struct flags){
		.first = vmmemory_word(m, f[0].address),
		.count = vmmemory_word(m, f[1].address),
		.size = vmtables_size(m, type),
		.name_at = f[2].offset,
		.address_at = f[3].offset,
	};
	return ret->first && ret->count && ret->count <= FLAGS_MAX && ret->size && ret->size < 1024;
}

static void read_flags(struct vmmemory *m, const struct flags *all, struct vmflag *flags, size_t n)
{
	for (uint64_t i = 0; i < all->count; i++) {
		uint64_t flag = all->first + i * all->size;
		uint64_t name = vmmemory_word(m, flag + all->name_at);

		for (size_t k = 0; name && k < n; k++)
			if (vmmemory_is(m, name, flags[k].name))
				flags[k].found = vmmemory_read_now(
					m, vmmemory_word(m, flag + all->address_at),
					&flags[k].value, flags[k].size);
	}
}

int vmflags_read(struct inject *in, struct vmflag *flags, size_t n)
{
	struct vmmemory *m;
	struct flags all;
	int r = vmmemory_of(in, &m);

	if (r < 0)
		return r;
	if (!find_flags(m, "JVMFlag", &all) && !find_flags(m, "Flag", &all))
		return -EPROTO;
	read_flags(m, &all, flags, n);
	return 0;
}

/* ---- values derived from flags and tables ---------------------------------------------------- */

int vmflags_text(struct inject *in, const char *name, char *ret, size_t size)
{
	struct vmflag flag = { name, sizeof(uint64_t), false, 0 };
	int r = vmflags_read(in, &flag, 1);

	memset(ret, 0, size);
	/* a text so close to the end of its mapping that @size bytes cannot be read counts as
	 * missing */
	if (r == 0 && flag.found && !vmmemory_read_now(in->memory, flag.value, ret, size - 1))
		memset(ret, 0, size);
	return r;
}

int vmflags_version(struct inject *in, struct jdk_version *ret)
{
	static const char type[] = "Abstract_VM_Version";
	struct vmtables_field fields[] = {
		{ .type = type, .field = "_vm_major_version" },
		{ .type = type, .field = "_vm_minor_version" },
		{ .type = type, .field = "_vm_security_version" },
	};
	int32_t values[ARRAY_SIZE(fields)];
	struct vmmemory *m;
	int r = vmmemory_of(in, &m);

	if (r < 0)
		return r;
	vmtables_fields(m, fields, ARRAY_SIZE(fields));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i].found &=
			vmmemory_read_now(m, fields[i].address, &values[i], sizeof(values[i]));
	if (!fields[0].found || !fields[1].found)
		return -EPROTO;
	*ret = jdk_version_of(values[0], values[1], fields[2].found ? &values[2] : NULL);
	return 0;
}
