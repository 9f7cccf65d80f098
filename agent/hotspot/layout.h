/*
 * The layout of HotSpot's data structures that walks read, JDK 8 to 28: offsets in bytes, from the
 * tables that every libjvm exports for the Serviceability Agent (vmStructs.cpp). The agent's thread
 * reads them once; they are constant afterwards. -1 = this version has no such field.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#define CODE_HEAPS_MAX	  8
#define RESUME_RANGES_MAX 4

enum blob_kind {
	BLOB_NONE,
	BLOB_NMETHOD,
	BLOB_NATIVE_NMETHOD, /* the wrapper of a native method */
	BLOB_INTERPRETER,
	BLOB_ADAPTER, /* i2c, c2i */
	BLOB_STUBS, /* StubRoutines: intrinsics, call stub */
	BLOB_VTABLE,
	BLOB_METHOD_HANDLES,
	BLOB_RUNTIME, /* stubs of C1 and of the shared runtime, with a frame of fixed size */
	BLOB_DEOPT,
	BLOB_EXCEPTION,
	BLOB_SAFEPOINT,
	BLOB_UNCOMMON_TRAP,
	BLOB_INLINE_CACHE,
	BLOB_OTHER,
};

struct vm_layout {
	int version; /* feature version: 8, 11, 17 ... (in JDK 8's tables the major version is
		      * 25) */

	/* CodeCache, CodeHeap */
	uint64_t heaps[CODE_HEAPS_MAX];
	uint32_t n_heaps;
	int32_t heap_memory, heap_segmap, heap_log2_segment, block_used, block_header_size;
	int32_t space_low, space_high;

	/* CodeBlob */
	int32_t blob_name, blob_size, blob_frame_size, blob_frame_complete, blob_kind;
	int32_t blob_code_offset, blob_code_begin; /* each version has one of the two */
	int32_t blob_mutable_data, blob_relocation_size, blob_data_offset;
	bool frame_complete_is_short;
	int8_t kinds[16]; /* CodeBlobKind (25+) -> enum blob_kind */

	/* nmethod, CompiledMethod (11 to 21) */
	int32_t nm_method, nm_verified_entry, nm_verified_entry_offset, nm_comp_level,
		nm_compile_id;
	int32_t nm_osr_entry;
	int32_t nm_orig_pc_offset, nm_deopt_begin, nm_deopt_mh_begin, nm_deopt_offset,
		nm_deopt_mh_offset;
	int32_t nm_scopes_begin, nm_scopes_offset, nm_pcs_offset, nm_dependencies_offset;
	int32_t nm_metadata_offset, nm_immutable_data;
	uint8_t unsigned5_excluded; /* byte values that an UNSIGNED5 number never contains (20+) */

	/* Method, ConstMethod, ConstantPool, Klass, Symbol */
	int32_t method_const, const_pool, const_code_size, const_name, const_signature, const_flags;
	int32_t const_size, pool_holder, pool_size, pool_source_file, klass_source_file, klass_name;
	int32_t symbol_length, symbol_body;
	uint32_t has_line_table; /* bit of const_flags */

	/* objects: java.lang.Class -> Klass */
	int32_t mirror_klass;

	/* threads and frames */
	int32_t thread_anchor, thread_stack_base, thread_stack_size, thread_state;
	int32_t thread_saved_pc, thread_exception_pc, thread_cont_entry, thread_object,
		thread_vthread, thread_monitor_owner, thread_unpacked;
	int32_t anchor_sp, anchor_pc, anchor_fp, wrapper_anchor, wrapper_words;
	uint64_t call_stub_return, interpreter_low, interpreter_high;
	struct {
		uint64_t low, high;
	} resume[RESUME_RANGES_MAX]; /* code at which the interpreter resumes a frame after a call
				      * or a deoptimisation */
	uint32_t n_resume;
	int32_t bcp_words, sender_sp_words, method_words; /* words of an interpreted frame, relative
							   * to its fp */

	/* vframeArray: the frames that deoptimisation makes out of one compiled frame */
	int32_t unpacked_caller, unpacked_count, unpacked_method, unpacked_bci;
	uint32_t unpacked_first, unpacked_stride; /* offset of the first element, and size of an
						   * element */
	uint32_t frame_bytes; /* size of the C++ class frame */
};

extern struct vm_layout vm_sig; /* read by handlers */
/* vm_sig is complete and may be used; false = stacks are walked by AsyncGetCallTrace, or not at
 * all. */
extern bool vm_known_sig;

/* 0, or -ENOTSUP with the name of the missing item in *why ("CodeBlob::_size"). */
int layout_read(const char **why);
/* The value of a boolean JVM flag; @otherwise if the flag does not exist. */
bool layout_flag(const char *name, bool otherwise);
/* The value of a string flag, in the JVM's memory; NULL = not set, or no such flag. */
const char *layout_flag_text(const char *name);
