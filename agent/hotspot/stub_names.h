/*
 * The routine of the JVM's stubs that contains a pc ("jbyte_disjoint_arraycopy"). The JVM keeps a
 * list of them for its own use (stubCodeGenerator.hpp, StubCodeDesc). No table gives its address,
 * so it is searched for once among libjvm's variables, by its structure. Without it stubs have the
 * name of their blob.
 */
#pragma once

#include <stdint.h>

/* Agent's thread: reads the list if it has grown. Cheap to repeat. */
void stub_names_refresh(void);
/* Address of the routine's name, a literal of libjvm; 0 = unknown. */
uint64_t stub_name_sig(uint64_t pc);
