/* The tables that libjvm exports for debuggers: where its fields lie, how large its types are. */
#pragma once

#include "injector/vmmemory.h"

/* A row of gHotSpotVMStructs. */
struct vmtables_field {
	const char *type, *field; /* that is looked for */
	bool found;
	uint64_t offset; /* in an object */
	uint64_t address; /* of a static field */
};
void vmtables_fields(struct vmmemory *m, struct vmtables_field *fields, size_t n);
/* Of gHotSpotVMTypes: bytes of an object; 0 = there is no such type. */
uint64_t vmtables_size(struct vmmemory *m, const char *type);
/* Of gHotSpotVMIntConstants. */
bool vmtables_constant(struct vmmemory *m, const char *name, int32_t *ret);
