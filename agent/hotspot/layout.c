/* See layout.h. A table has a row for each field: its names in different versions, and whether
 * walks need it. */
#include "agent/hotspot/layout.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "agent/base/arch.h"
#include "agent/hotspot/libjvm.h"

/* of a field in any struct of the JVM; JavaThread has about 2,000 bytes */
#define OFFSET_MAX 16384

struct vm_layout vm_sig;
bool vm_known_sig;

enum need { OPTIONAL, NEEDED };

struct field {
	int32_t *to;
	enum need need;
	const char *type, *name;
	const char *type2, *name2; /* its name in other versions; NULL = the same in all */
};

static const struct field fields[] = {
	{ &vm_sig.heap_memory, NEEDED, "CodeHeap", "_memory", NULL, NULL },
	{ &vm_sig.heap_segmap, NEEDED, "CodeHeap", "_segmap", NULL, NULL },
	{ &vm_sig.heap_log2_segment, NEEDED, "CodeHeap", "_log2_segment_size", NULL, NULL },
	{ &vm_sig.block_used, NEEDED, "HeapBlock::Header", "_used", NULL, NULL },
	{ &vm_sig.space_low, NEEDED, "VirtualSpace", "_low", NULL, NULL },
	{ &vm_sig.space_high, NEEDED, "VirtualSpace", "_high", NULL, NULL },
	{ &vm_sig.blob_name, NEEDED, "CodeBlob", "_name", NULL, NULL },
	{ &vm_sig.blob_size, NEEDED, "CodeBlob", "_size", NULL, NULL },
	{ &vm_sig.blob_frame_size, NEEDED, "CodeBlob", "_frame_size", NULL, NULL },
	{ &vm_sig.blob_frame_complete, NEEDED, "CodeBlob", "_frame_complete_offset", NULL, NULL },
	{ &vm_sig.blob_kind, OPTIONAL, "CodeBlob", "_kind", NULL, NULL },
	{ &vm_sig.blob_code_offset, OPTIONAL, "CodeBlob", "_code_offset", NULL, NULL },
	{ &vm_sig.blob_code_begin, OPTIONAL, "CodeBlob", "_code_begin", NULL, NULL },
	{ &vm_sig.blob_mutable_data, OPTIONAL, "CodeBlob", "_mutable_data", NULL, NULL },
	{ &vm_sig.blob_relocation_size, OPTIONAL, "CodeBlob", "_relocation_size", NULL, NULL },
	{ &vm_sig.blob_data_offset, OPTIONAL, "CodeBlob", "_data_offset", NULL, NULL },
	{ &vm_sig.nm_method, NEEDED, "nmethod", "_method", "CompiledMethod", "_method" },
	{ &vm_sig.nm_verified_entry, OPTIONAL, "nmethod", "_verified_entry_point", NULL, NULL },
	{ &vm_sig.nm_verified_entry_offset, OPTIONAL, "nmethod", "_verified_entry_offset", NULL,
	  NULL },
	{ &vm_sig.nm_comp_level, NEEDED, "nmethod", "_comp_level", NULL, NULL },
	{ &vm_sig.nm_compile_id, NEEDED, "nmethod", "_compile_id", NULL, NULL },
	{ &vm_sig.nm_osr_entry, OPTIONAL, "nmethod", "_osr_entry_point", NULL, NULL },
	{ &vm_sig.nm_orig_pc_offset, NEEDED, "nmethod", "_orig_pc_offset", NULL, NULL },
	{ &vm_sig.nm_deopt_begin, OPTIONAL, "CompiledMethod", "_deopt_handler_begin", NULL, NULL },
	{ &vm_sig.nm_deopt_mh_begin, OPTIONAL, "CompiledMethod", "_deopt_mh_handler_begin", NULL,
	  NULL },
	{ &vm_sig.nm_deopt_offset, OPTIONAL, "nmethod", "_deopt_handler_offset", "nmethod",
	  "_deoptimize_offset" },
	{ &vm_sig.nm_deopt_mh_offset, OPTIONAL, "nmethod", "_deopt_mh_handler_offset", "nmethod",
	  "_deoptimize_mh_offset" },
	{ &vm_sig.nm_scopes_begin, OPTIONAL, "CompiledMethod", "_scopes_data_begin", NULL, NULL },
	{ &vm_sig.nm_scopes_offset, OPTIONAL, "nmethod", "_scopes_data_offset", NULL, NULL },
	{ &vm_sig.nm_pcs_offset, NEEDED, "nmethod", "_scopes_pcs_offset", NULL, NULL },
	{ &vm_sig.nm_dependencies_offset, OPTIONAL, "nmethod", "_dependencies_offset", NULL, NULL },
	{ &vm_sig.nm_metadata_offset, OPTIONAL, "nmethod", "_metadata_offset", NULL, NULL },
	{ &vm_sig.nm_immutable_data, OPTIONAL, "nmethod", "_immutable_data", NULL, NULL },
	{ &vm_sig.method_const, NEEDED, "Method", "_constMethod", NULL, NULL },
	{ &vm_sig.const_pool, NEEDED, "ConstMethod", "_constants", NULL, NULL },
	{ &vm_sig.const_code_size, NEEDED, "ConstMethod", "_code_size", NULL, NULL },
	{ &vm_sig.const_name, NEEDED, "ConstMethod", "_name_index", NULL, NULL },
	{ &vm_sig.const_signature, NEEDED, "ConstMethod", "_signature_index", NULL, NULL },
	{ &vm_sig.const_flags, OPTIONAL, "ConstMethod", "_flags", "ConstMethod", "_flags._flags" },
	{ &vm_sig.pool_holder, NEEDED, "ConstantPool", "_pool_holder", NULL, NULL },
	{ &vm_sig.pool_source_file, OPTIONAL, "ConstantPool", "_source_file_name_index", NULL,
	  NULL },
	{ &vm_sig.klass_source_file, OPTIONAL, "InstanceKlass", "_source_file_name_index", NULL,
	  NULL },
	{ &vm_sig.klass_name, NEEDED, "Klass", "_name", NULL, NULL },
	{ &vm_sig.symbol_length, OPTIONAL, "Symbol", "_length", NULL, NULL },
	{ &vm_sig.symbol_body, NEEDED, "Symbol", "_body", "Symbol", "_body[0]" },
	{ &vm_sig.thread_anchor, NEEDED, "JavaThread", "_anchor", NULL, NULL },
	{ &vm_sig.thread_stack_base, NEEDED, "JavaThread", "_stack_base", "Thread", "_stack_base" },
	{ &vm_sig.thread_stack_size, NEEDED, "JavaThread", "_stack_size", "Thread", "_stack_size" },
	{ &vm_sig.thread_state, NEEDED, "JavaThread", "_thread_state", NULL, NULL },
	{ &vm_sig.thread_saved_pc, NEEDED, "JavaThread", "_saved_exception_pc", NULL, NULL },
	{ &vm_sig.thread_exception_pc, OPTIONAL, "JavaThread", "_exception_pc", NULL, NULL },
	{ &vm_sig.thread_cont_entry, OPTIONAL, "JavaThread", "_cont_entry", NULL, NULL },
	{ &vm_sig.thread_object, OPTIONAL, "JavaThread", "_threadObj", NULL, NULL },
	{ &vm_sig.thread_vthread, OPTIONAL, "JavaThread", "_vthread", NULL, NULL },
	{ &vm_sig.thread_monitor_owner, OPTIONAL, "JavaThread", "_monitor_owner_id", NULL, NULL },
	{ &vm_sig.thread_unpacked, NEEDED, "JavaThread", "_vframe_array_head", NULL, NULL },
	{ &vm_sig.unpacked_caller, NEEDED, "vframeArray", "_caller", NULL, NULL },
	{ &vm_sig.unpacked_count, NEEDED, "vframeArray", "_frames", NULL, NULL },
	{ &vm_sig.unpacked_method, NEEDED, "vframeArrayElement", "_method", NULL, NULL },
	{ &vm_sig.unpacked_bci, NEEDED, "vframeArrayElement", "_bci", NULL, NULL },
	{ &vm_sig.anchor_sp, NEEDED, "JavaFrameAnchor", "_last_Java_sp", NULL, NULL },
	{ &vm_sig.anchor_pc, NEEDED, "JavaFrameAnchor", "_last_Java_pc", NULL, NULL },
	{ &vm_sig.anchor_fp, NEEDED, "JavaFrameAnchor", "_last_Java_fp", NULL, NULL },
	{ &vm_sig.wrapper_anchor, NEEDED, "JavaCallWrapper", "_anchor", NULL, NULL },
};

static char missing[96];

static int layout_lacks(const char *type, const char *name, const char **why)
{
	snprintf(missing, sizeof(missing), "libjvm's tables lack %s::%s", type, name);
	*why = missing;
	return -ENOTSUP;
}

static int read_fields(const char **why)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct field *f = &fields[i];
		long offset = libjvm_offset(f->type, f->name);

		if (offset < 0 && f->type2)
			offset = libjvm_offset(f->type2, f->name2);
		if (offset < 0 && f->to == &vm_sig.anchor_fp) {
			*why = "the frames of the Zero VM are of another kind; most stacks have none of Java";
			return -ENOTSUP;
		}
		if (offset >= OFFSET_MAX || (offset < 0 && f->need == NEEDED))
			return layout_lacks(f->type, f->name, why);
		*f->to = (int32_t)offset;
	}
	return 0;
}

/* Checks fields that exist in one of two forms, and the fields that belong to each form. */
static int check_pairs(const char **why)
{
	if (vm_sig.blob_code_offset < 0 && vm_sig.blob_code_begin < 0)
		return layout_lacks("CodeBlob", "_code_offset", why);
	if (vm_sig.nm_verified_entry < 0 && vm_sig.nm_verified_entry_offset < 0)
		return layout_lacks("nmethod", "_verified_entry_point", why);
	if (vm_sig.nm_scopes_begin < 0 && vm_sig.nm_scopes_offset < 0)
		return layout_lacks("nmethod", "_scopes_data_offset", why);
	if (vm_sig.nm_deopt_offset < 0)
		vm_sig.nm_deopt_offset =
			(int32_t)libjvm_offset("nmethod", "_deopt_handler_entry_offset");
	if (vm_sig.nm_deopt_begin < 0 && vm_sig.nm_deopt_offset < 0)
		return layout_lacks("nmethod", "_deopt_handler_offset", why);
	if (vm_sig.nm_immutable_data < 0 && vm_sig.nm_dependencies_offset < 0)
		return layout_lacks("nmethod", "_dependencies_offset", why);
	if (vm_sig.nm_metadata_offset < 0 &&
	    (vm_sig.blob_mutable_data < 0 || vm_sig.blob_relocation_size < 0))
		return layout_lacks("nmethod", "_metadata_offset", why);
	if (vm_sig.symbol_length < 0) { /* JDK 13 and 14: the upper half of a word */
		long word = libjvm_offset("Symbol", "_length_and_refcount");

		if (word < 0 || word >= OFFSET_MAX - 2)
			return layout_lacks("Symbol", "_length", why);
		vm_sig.symbol_length = (int32_t)word + 2;
	}
	return 0;
}

static int read_sizes(const char **why)
{
	vm_sig.const_size = (int32_t)libjvm_type_size("ConstMethod");
	vm_sig.pool_size = (int32_t)libjvm_type_size("ConstantPool");
	vm_sig.block_header_size = (int32_t)libjvm_type_size("HeapBlock");
	if (!vm_sig.const_size || !vm_sig.pool_size || !vm_sig.block_header_size)
		return layout_lacks("ConstMethod", "size", why);
	vm_sig.frame_bytes = (uint32_t)libjvm_type_size("frame");
	vm_sig.unpacked_stride = (uint32_t)libjvm_type_size("vframeArrayElement");
	/* the class declares one element of the array */
	vm_sig.unpacked_first = (uint32_t)libjvm_type_size("vframeArray") - vm_sig.unpacked_stride;
	if (!vm_sig.frame_bytes || !vm_sig.unpacked_stride || vm_sig.unpacked_first > OFFSET_MAX)
		return layout_lacks("vframeArray", "size", why);
	return 0;
}

/* ---- values that never change while the JVM runs ---------------------------------------- */

static uint64_t layout_pointer_at(const void *address)
{
	uint64_t value = 0;

	if (address)
		memcpy(&value, address, sizeof(value));
	return value;
}

/* Reads CodeCache::_heaps, a GrowableArray<CodeHeap*>. The names of the fields for its length and
 * data differ between versions. */
static int read_heaps(const char **why)
{
	const char *array =
		(const char *)(uintptr_t)layout_pointer_at(libjvm_static("CodeCache", "_heaps"));
	long length_at = libjvm_offset("GrowableArrayBase", "_len");
	long data_at = libjvm_offset("GrowableArray<int>", "_data");
	const char *data;
	int32_t n;

	vm_sig.n_heaps = 0;
	if (!array) {
		vm_sig.heaps[0] = layout_pointer_at(libjvm_static("CodeCache", "_heap"));
		vm_sig.n_heaps = vm_sig.heaps[0] != 0;
		return vm_sig.n_heaps ? 0 : layout_lacks("CodeCache", "_heaps", why);
	}
	if (length_at < 0)
		length_at = libjvm_offset("GenericGrowableArray", "_len");
	if (length_at < 0 || data_at < 0)
		return layout_lacks("GrowableArrayBase", "_len", why);
	memcpy(&n, array + length_at, sizeof(n));
	data = (const char *)(uintptr_t)layout_pointer_at(array + data_at);
	if (n < 1 || n > CODE_HEAPS_MAX || !data)
		return layout_lacks("CodeCache", "_heaps (a plausible length)", why);
	for (; vm_sig.n_heaps < (uint32_t)n; vm_sig.n_heaps++)
		vm_sig.heaps[vm_sig.n_heaps] = layout_pointer_at(data + 8 * vm_sig.n_heaps);
	return 0;
}

static bool is_resume(const char *description)
{
	return strcmp(description, "return entry points") == 0 ||
	       strcmp(description, "invoke return entry points") == 0 ||
	       strcmp(description, "deoptimization entry points") == 0;
}

/* Finds the code at which interpreted frames resume: looks through the interpreter's codelets,
 * which follow one another, each with a description. */
static void read_resume(uint64_t queue)
{
	long size_at = libjvm_offset("InterpreterCodelet", "_size");
	long text_at = libjvm_offset("InterpreterCodelet", "_description");
	long end_at = libjvm_offset("StubQueue", "_queue_end");
	uint64_t at = vm_sig.interpreter_low, end;
	int32_t length, size;

	vm_sig.n_resume = 0;
	if (size_at < 0 || text_at < 0 || end_at < 0)
		return;
	memcpy(&length, (const char *)(uintptr_t)queue + end_at, sizeof(length));
	end = at + (uint64_t)length;
	for (; at < end && end <= vm_sig.interpreter_high; at += (uint64_t)size) {
		const char *codelet = (const char *)(uintptr_t)at;
		const char *text = (const char *)(uintptr_t)layout_pointer_at(codelet + text_at);

		memcpy(&size, codelet + size_at, sizeof(size));
		if (size <= 0 || !text || vm_sig.n_resume == RESUME_RANGES_MAX)
			return;
		if (!is_resume(text))
			continue;
		vm_sig.resume[vm_sig.n_resume].low = at;
		vm_sig.resume[vm_sig.n_resume++].high = at + (uint64_t)size;
	}
}

static int read_code(const char **why)
{
	uint64_t queue = layout_pointer_at(libjvm_static("AbstractInterpreter", "_code"));
	long buffer_at = libjvm_offset("StubQueue", "_stub_buffer");
	long limit_at = libjvm_offset("StubQueue", "_buffer_limit");
	int32_t limit;

	vm_sig.call_stub_return =
		layout_pointer_at(libjvm_static("StubRoutines", "_call_stub_return_address"));
	if (!vm_sig.call_stub_return)
		return layout_lacks("StubRoutines", "_call_stub_return_address", why);
	if (!queue || buffer_at < 0 || limit_at < 0) /* the Zero VM has no such interpreter */
		return layout_lacks("AbstractInterpreter", "_code", why);
	memcpy(&limit, (const char *)(uintptr_t)queue + limit_at, sizeof(limit));
	vm_sig.interpreter_low = layout_pointer_at((const char *)(uintptr_t)queue + buffer_at);
	vm_sig.interpreter_high = vm_sig.interpreter_low + (uint64_t)limit;
	read_resume(queue);
	return 0;
}

static void read_kinds(void)
{
	static const struct {
		const char *name;
		enum blob_kind kind;
	} kinds[] = {
		{ "CodeBlobKind::Nmethod", BLOB_NMETHOD },
		{ "CodeBlobKind::Buffer", BLOB_STUBS },
		{ "CodeBlobKind::Adapter", BLOB_ADAPTER },
		{ "CodeBlobKind::Vtable", BLOB_VTABLE },
		{ "CodeBlobKind::MHAdapter", BLOB_METHOD_HANDLES },
		{ "CodeBlobKind::RuntimeStub", BLOB_RUNTIME },
		{ "CodeBlobKind::Deoptimization", BLOB_DEOPT },
		{ "CodeBlobKind::Safepoint", BLOB_SAFEPOINT },
		{ "CodeBlobKind::Exception", BLOB_EXCEPTION },
		{ "CodeBlobKind::UncommonTrap", BLOB_UNCOMMON_TRAP },
	};
	int32_t value;

	memset(vm_sig.kinds, BLOB_OTHER, sizeof(vm_sig.kinds));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (libjvm_int_constant(kinds[i].name, &value) && value >= 0 &&
		    value < (int32_t)sizeof(vm_sig.kinds))
			vm_sig.kinds[value] = (int8_t)kinds[i].kind;
}

static void read_mirror(void)
{
	const int32_t *at = libjvm_static("java_lang_Class", "_klass_offset");

	vm_sig.mirror_klass = at ? *at : -1;
}

static void read_version(void)
{
	const int32_t *major = libjvm_static("Abstract_VM_Version", "_vm_major_version");

	vm_sig.version = libjvm_static("CodeCache", "_heap") || !major ? 8 : *major;
}

/* Sets values that differ between versions and are in no table. */
static void read_by_version(void)
{
	struct libjvm_field f;
	int32_t value;

	vm_sig.frame_complete_is_short =
		libjvm_field("CodeBlob", "_frame_complete_offset", &f) && strstr(f.type, "16");
	vm_sig.unsigned5_excluded = vm_sig.version >= 20;
	vm_sig.has_line_table = 1;
	if (libjvm_int_constant("ConstMethod::_has_linenumber_table", &value) ||
	    libjvm_int_constant("ConstMethodFlags::_misc_has_linenumber_table", &value))
		vm_sig.has_line_table = (uint32_t)value;
	vm_sig.wrapper_words = ARCH_WRAPPER_WORDS;
	if (libjvm_int_constant("frame::entry_frame_call_wrapper_offset", &value))
		vm_sig.wrapper_words = value;
	vm_sig.sender_sp_words = -1;
	vm_sig.method_words = -3;
	vm_sig.bcp_words = vm_sig.version <= 8 ? -7 : -7 - ARCH_MIRROR_WORDS;
}

int layout_read(const char **why)
{
	int r;

	if (!libjvm_find()) {
		*why = "no libjvm in this process";
		return -ENOTSUP;
	}
	r = read_fields(why);
	if (r == 0)
		r = check_pairs(why);
	if (r == 0)
		r = read_sizes(why);
	if (r == 0)
		r = read_heaps(why);
	if (r == 0)
		r = read_code(why);
	read_kinds();
	read_mirror();
	read_version();
	read_by_version();
	return r;
}

static const char *flag_value(const char *name)
{
	const char *type = libjvm_static("JVMFlag", "flags") ? "JVMFlag" : "Flag"; /* JDK 8 */
	const char *flags =
		(const char *)(uintptr_t)layout_pointer_at(libjvm_static(type, "flags"));
	uint64_t n = layout_pointer_at(libjvm_static(type, "numFlags"));
	long name_at = libjvm_offset(type, "_name"), address_at = libjvm_offset(type, "_addr");
	size_t size = libjvm_type_size(type);

	if (!flags || name_at < 0 || address_at < 0 || !size || n > 10000)
		return NULL;
	for (uint64_t i = 0; i < n; i++) {
		const char *flag = flags + i * size;
		const char *flag_name = (const char *)(uintptr_t)layout_pointer_at(flag + name_at);

		if (flag_name && strcmp(flag_name, name) == 0)
			return (const char *)(uintptr_t)layout_pointer_at(flag + address_at);
	}
	return NULL;
}

bool layout_flag(const char *name, bool otherwise)
{
	const char *value = flag_value(name);

	return value ? *value != 0 : otherwise;
}

const char *layout_flag_text(const char *name)
{
	return (const char *)(uintptr_t)layout_pointer_at(flag_value(name));
}
