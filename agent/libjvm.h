/*
 * libjvm as it lies in this process: found through the dynamic linker's list (an embedding launcher
 * may have loaded it RTLD_LOCAL, so dlsym alone is not enough), its exported symbols, and the
 * VMStructs tables that describe its own layout. Not for handlers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool libjvm_find(void); /* true once it is known; cheap to repeat */
void *libjvm_symbol(const char *name); /* NULL = not exported */
/* The GOT slot through which libjvm calls @name; NULL = it imports no such function. */
void **libjvm_import_slot(const char *name);

/* VMStructs: offset of a field, or -1. */
long libjvm_offset(const char *type, const char *field);
/* Address of a static field, or NULL. */
void *libjvm_static(const char *type, const char *field);
size_t libjvm_type_size(const char *type); /* 0 = unknown */

/* Where JIT code lies; false = unknown. */
bool libjvm_code_cache(uint64_t *ret_low, uint64_t *ret_high);
