/* Reads the tables that libjvm exports for debuggers (vmStructs.hpp): offsets of the JVM's fields,
 * sizes of its types, constants. */
#pragma once

#include "injector/vmmemory.h"

/* A row of gHotSpotVMStructs. */
struct vmtables_field {
	const char *type, *field; /* the type and field to find */
	bool found;
	uint64_t offset; /* its offset in an object */
	uint64_t address; /* its address, if it is static */
};
void vmtables_fields(struct vmmemory *m, struct vmtables_field *fields, size_t n);
/* The size of an object in bytes, from gHotSpotVMTypes; 0 = there is no such type. */
uint64_t vmtables_size(struct vmmemory *m, const char *type);
/* A constant from gHotSpotVMIntConstants; false = there is none of that name. */
bool vmtables_constant(struct vmmemory *m, const char *name, int32_t *ret);
