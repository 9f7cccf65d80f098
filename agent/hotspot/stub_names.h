/*
 * Names of the routines in the JVM's stubs, such as "jbyte_disjoint_arraycopy". The JVM keeps a
 * list of them for its own use (StubCodeDesc, stubCodeGenerator.hpp). No table gives the address of
 * this list, so it is recognised by its structure among libjvm's variables. If it is not found,
 * frames show the name of the blob.
 */
#pragma once

#include <stdint.h>

/* Agent's thread: reads the list if it has grown; cheap if not. */
void stub_names_refresh(void);
/* Handler: the address of the name of the routine that contains @pc, a literal of libjvm; 0 =
 * unknown. */
uint64_t stub_name_sig(uint64_t pc);
