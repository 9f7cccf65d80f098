/*
 * libjvm as it lies in this process: found through the dynamic linker's list (an embedding launcher
 * may have loaded it RTLD_LOCAL, so dlsym alone is not enough), its exported symbols, and the
 * VMStructs tables that describe its own layout. Not for handlers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/jdk_bugs.h"

bool libjvm_find(void); /* true once it is known; cheap to repeat */
/* Where it lies, and its variables that are zero at first. */
struct libjvm_image {
	uint64_t low, high, bss_low, bss_high;
};
bool libjvm_image(struct libjvm_image *ret);
void *libjvm_symbol(const char *name); /* NULL = not exported */
/* Where its file lies, and the base of its addresses. */
bool libjvm_file(const char **ret_path, uint64_t *ret_base);
/* Variables that it does not export, by their mangled names; false = not all of them are in the
 * symbol table of its file. That may be another build's by now: check what they say. */
#define LIBJVM_HIDDEN_MAX 16
bool libjvm_hidden(const char *const *names, uint32_t n, const void **ret);
/* The GOT slot through which libjvm calls @name; NULL = it imports no such function. */
void **libjvm_import_slot(const char *name);

/* One field of VMStructs. */
struct libjvm_field {
	const char *type; /* of its value, as the JVM's source spells it; never NULL */
	long offset; /* in its struct */
	void *address; /* of a static field, else NULL */
};
bool libjvm_field(const char *type, const char *field, struct libjvm_field *ret);
/* Its offset alone, or -1. */
long libjvm_offset(const char *type, const char *field);
/* Address of a static field, or NULL. */
void *libjvm_static(const char *type, const char *field);
size_t libjvm_type_size(const char *type); /* 0 = unknown */
bool libjvm_int_constant(const char *name, int32_t *ret);
bool libjvm_long_constant(const char *name, int64_t *ret);

/* feature 0 = unknown */
struct jdk_version libjvm_version(void);

/* Where JIT code lies; false = unknown. */
bool libjvm_code_cache(uint64_t *ret_low, uint64_t *ret_high);
