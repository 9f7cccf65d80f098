/*
 * Which routine of the JVM's stubs a pc lies in ("jbyte_disjoint_arraycopy"). The JVM keeps a list
 * of them for its own use (stubCodeGenerator.hpp, StubCodeDesc), of which no table says where it
 * begins: it is looked for among libjvm's variables, once, by what it must look like. Without it
 * stubs have the name of their blob.
 */
#pragma once

#include <stdint.h>

/* Agent's thread: read the list if it has grown. Cheap to repeat. */
void stub_names_refresh(void);
/* Address of the routine's name, which is libjvm's for ever; 0 = not known. */
uint64_t stub_name_sig(uint64_t pc);
