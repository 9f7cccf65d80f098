/* A libjvm.so that contains only the tables that HotSpot exports for debuggers, with four flags
 * and two classes. */
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

struct symbol {
	uint32_t hash;
	uint16_t length;
	char body[26];
};

struct klass {
	void *table;
	struct symbol *name;
	uint8_t init_state;
};

struct constant {
	const char *name;
	int32_t value;
};

struct symbol object_name = { 7, 16, "java/lang/Object" };
struct symbol virtual_name = { 7, 23, "java/lang/VirtualThread" };
struct klass object = { 0, &object_name, 4 }, virtual_thread = { 0, &virtual_name, 1 };
struct klass *classes[] = { &object, 0, (struct klass *)8, &virtual_thread, 0 };

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
	{ "Klass", "_name", "Symbol*", 0, __builtin_offsetof(struct klass, name), 0 },
	{ "Symbol", "_length", "u2", 0, __builtin_offsetof(struct symbol, length), 0 },
	{ "Symbol", "_body", 0, 0, __builtin_offsetof(struct symbol, body), 0 },
	{ "InstanceKlass", "_init_state", "u1", 0, __builtin_offsetof(struct klass, init_state),
	  0 },
	{ "vmClasses", "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]", "InstanceKlass*",
	  1, 0, classes },
	{ 0, 0, 0, 0, 0, 0 },
};
static struct constant constants[] = {
	{ "InstanceKlass::linked", 2 },
	{ "InstanceKlass::fully_initialized", 4 },
	{ 0, 0 },
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
const struct constant *gHotSpotVMIntConstants = constants;
uint64_t gHotSpotVMIntConstantEntryArrayStride = sizeof(struct constant);
uint64_t gHotSpotVMIntConstantEntryNameOffset = __builtin_offsetof(struct constant, name);
uint64_t gHotSpotVMIntConstantEntryValueOffset = __builtin_offsetof(struct constant, value);
