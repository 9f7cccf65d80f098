/* A libjvm.so with nothing but the tables that HotSpot exports for debuggers, and four flags. */
#include <stdbool.h>
#include <stdint.h>

struct row {
	const char *type, *field, *type_string;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type_row {
	const char *name, *super;
	int32_t is_oop, is_integer, is_unsigned;
	uint64_t size;
};

struct flag {
	void *address;
	const char *name;
	int flags, type;
};

bool disable_attach = true, dynamic_loading = false;
const char *checkpoint_to = "/tmp/image";
struct flag table[] = {
	{ &dynamic_loading, "EnableDynamicAgentLoading", 0, 0 },
	{ &disable_attach, "DisableAttachMechanism", 0, 0 },
	{ &checkpoint_to, "CRaCCheckpointTo", 0, 0 },
	{ (void *)8, "NowhereInMemory", 0, 0 },
};
int32_t vm_major = 25, vm_minor = 352, vm_security = 3;
struct flag *flags = table;
uint64_t num_flags = sizeof(table) / sizeof(table[0]);

struct row rows[] = {
	{ "Universe", "_heap", "void*", 1, 0, &flags },
	{ "JVMFlag", "_name", "const char*", 0, __builtin_offsetof(struct flag, name), 0 },
	{ "JVMFlag", "_addr", "void*", 0, __builtin_offsetof(struct flag, address), 0 },
	{ "JVMFlag", "_flags", "int", 0, __builtin_offsetof(struct flag, flags), 0 },
	{ "Abstract_VM_Version", "_vm_major_version", "int", 1, 0, &vm_major },
	{ "Abstract_VM_Version", "_vm_minor_version", "int", 1, 0, &vm_minor },
	{ "Abstract_VM_Version", "_vm_security_version", "int", 1, 0, &vm_security },
	{ "JVMFlag", "flags", "JVMFlag*", 1, 0, &flags },
	{ "JVMFlag", "numFlags", "size_t", 1, 0, &num_flags },
	{ 0, 0, 0, 0, 0, 0 },
};
static struct type_row types[] = {
	{ "Universe", 0, 0, 0, 0, 1 },
	{ "JVMFlag", 0, 0, 0, 0, sizeof(struct flag) },
	{ 0, 0, 0, 0, 0, 0 },
};

const struct row *gHotSpotVMStructs = rows;
uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct row);
uint64_t gHotSpotVMStructEntryTypeNameOffset = __builtin_offsetof(struct row, type);
uint64_t gHotSpotVMStructEntryFieldNameOffset = __builtin_offsetof(struct row, field);
uint64_t gHotSpotVMStructEntryOffsetOffset = __builtin_offsetof(struct row, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = __builtin_offsetof(struct row, address);
const struct type_row *gHotSpotVMTypes = types;
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type_row);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = __builtin_offsetof(struct type_row, name);
uint64_t gHotSpotVMTypeEntrySizeOffset = __builtin_offsetof(struct type_row, size);
