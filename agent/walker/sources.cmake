# The walker's sources, as agent/CMakeLists.txt takes them; and its unit tests.
set(WALKER_SOURCES walker/asgct/asgct.c walker/asgct/jvm_tools.c walker/asgct/names.c walker/cfi.c walker/cfi_pack.c
	walker/class_name.c walker/elf_image.c walker/guard.c walker/hotspot/code.c
	walker/hotspot/continuation.c walker/hotspot/hotspot.c walker/hotspot/layout.c
	walker/hotspot/method.c walker/hotspot/oop.c walker/hotspot/stub_names.c walker/java_thread.c walker/maps.c walker/safe_copy.c
	walker/walker.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
	set(machine aarch64)
else()
	set(machine x86_64)
endif()
set(WALKER_SIG_SOURCES walker/asgct/asgct_sig.c walker/asgct/stubs_sig.c walker/forward_${machine}_sig.c walker/guard_sig.c
	walker/hotspot/blob_${machine}_sig.c walker/hotspot/calls_${machine}_sig.c
	walker/hotspot/code_sig.c walker/hotspot/compiled_edge_${machine}_sig.c
	walker/hotspot/compiled_sig.c walker/hotspot/continuation_sig.c walker/hotspot/deopt_sig.c
	walker/hotspot/hotspot_sig.c
	walker/hotspot/interpreter_edge_${machine}_sig.c
	walker/hotspot/interpreter_sig.c walker/hotspot/method_sig.c walker/hotspot/oop_sig.c
	walker/hotspot/returns_sig.c walker/hotspot/scopes_sig.c walker/hotspot/stub_names_sig.c walker/hotspot/virtual_sig.c walker/java_thread_sig.c
	walker/unwind_sig.c walker/walk_sig.c)
list(APPEND WALKER_SIG_SOURCES walker/hotspot/forward_stub_${machine}_sig.c)
if(machine STREQUAL x86_64)
	list(APPEND WALKER_SIG_SOURCES walker/instruction_x86_64_sig.c)
endif()

if(WITH_TESTS)
	set(walker_dir ${CMAKE_CURRENT_LIST_DIR})
	unit_test(test_cfi SOURCES ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c ${walker_dir}/elf_image.c ${walker_dir}/maps.c
		${walker_dir}/forward_x86_64_sig.c ${walker_dir}/guard_sig.c ${walker_dir}/instruction_x86_64_sig.c
		${walker_dir}/safe_copy.c ${walker_dir}/unwind_sig.c)
	unit_test(test_maps SOURCES ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c ${walker_dir}/class_name.c
		${walker_dir}/elf_image.c ${walker_dir}/forward_x86_64_sig.c ${walker_dir}/guard_sig.c
		${walker_dir}/instruction_x86_64_sig.c ${walker_dir}/maps.c ${walker_dir}/safe_copy.c ${walker_dir}/unwind_sig.c)
	unit_test(test_forward SOURCES ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c ${walker_dir}/forward_x86_64_sig.c ${walker_dir}/guard_sig.c
		${walker_dir}/instruction_x86_64_sig.c ${walker_dir}/unwind_sig.c)
	unit_test(test_compiled_edge LIBS flags SOURCES ${walker_dir}/hotspot/compiled_edge_x86_64_sig.c
		${walker_dir}/guard_sig.c ${walker_dir}/unwind_sig.c ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c
		${walker_dir}/forward_x86_64_sig.c ${walker_dir}/instruction_x86_64_sig.c)
	unit_test(test_blob LIBS flags SOURCES ${walker_dir}/hotspot/blob_x86_64_sig.c
		${walker_dir}/guard_sig.c ${walker_dir}/unwind_sig.c ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c
		${walker_dir}/forward_x86_64_sig.c ${walker_dir}/instruction_x86_64_sig.c)
	unit_test(test_compiled LIBS flags SOURCES ${walker_dir}/hotspot/compiled_sig.c ${walker_dir}/hotspot/scopes_sig.c
		${walker_dir}/guard_sig.c ${walker_dir}/unwind_sig.c ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c
		${walker_dir}/forward_x86_64_sig.c ${walker_dir}/instruction_x86_64_sig.c)
	unit_test(test_guard LIBS flags SOURCES ${walker_dir}/guard.c ${walker_dir}/guard_sig.c ${walker_dir}/unwind_sig.c
		${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c ${walker_dir}/forward_x86_64_sig.c ${walker_dir}/instruction_x86_64_sig.c)
	unit_test(test_oop LIBS flags SOURCES ${walker_dir}/hotspot/oop_sig.c
		${walker_dir}/guard_sig.c ${walker_dir}/unwind_sig.c ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c
		${walker_dir}/forward_x86_64_sig.c ${walker_dir}/instruction_x86_64_sig.c)
	unit_test(test_stub_names LIBS flags SOURCES ${walker_dir}/hotspot/stub_names.c ${walker_dir}/hotspot/stub_names_sig.c
		${walker_dir}/guard_sig.c ${walker_dir}/unwind_sig.c ${walker_dir}/cfi.c ${walker_dir}/cfi_pack.c
		${walker_dir}/forward_x86_64_sig.c ${walker_dir}/instruction_x86_64_sig.c)
	foreach(test test_blob test_cfi test_compiled test_compiled_edge test_forward test_guard test_maps test_oop test_stub_names)
		target_include_directories(${test} SYSTEM PRIVATE ${JDK_HEADERS}
			${JDK_HEADERS}/linux)
	endforeach()
endif()
