/*
 * Access to the libjvm of this process: its exported symbols, and the VMStructs tables, in which it
 * describes its own data structures. The library is found through the dynamic linker's list,
 * because dlsym fails if a launcher has loaded it with RTLD_LOCAL. Not for signal handlers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/jdk_bugs.h"

bool libjvm_find(void); /* true once libjvm is found; cheap to repeat */
/* The address range of libjvm, and that of its .bss. */
struct libjvm_image {
	uint64_t low, high, bss_low, bss_high;
};
bool libjvm_image(struct libjvm_image *ret);
void *libjvm_symbol(const char *name); /* NULL = not exported */
/* The path of its file, and the address at which the file's address 0 is loaded; false =
 * unknown. */
bool libjvm_file(const char **ret_path, uint64_t *ret_base);
/* Finds @n variables that libjvm does not export, by their mangled names, in the symbol table of
 * its file. @ret: their addresses, at each of which 8 bytes can be read. false = the table does not
 * have all of them. The file may have been replaced by another build, so the caller must check what
 * the variables contain. */
#define LIBJVM_HIDDEN_MAX 16
bool libjvm_hidden(const char *const *names, uint32_t n, const void **ret);
/* The GOT slot through which libjvm calls @name; NULL = it does not import the function. */
void **libjvm_import_slot(const char *name);

/* One field of VMStructs. */
struct libjvm_field {
	const char *type; /* type of the value as the JVM's source spells it; never NULL */
	long offset; /* of an instance field in its struct */
	void *address; /* address of a static field, else NULL */
};
bool libjvm_field(const char *type, const char *field, struct libjvm_field *ret);
/* The offset of a field, or -1. */
long libjvm_offset(const char *type, const char *field);
/* The same of a field that JavaThread has, or, in earlier versions, its base Thread. */
int32_t libjvm_thread_offset(const char *field);
/* The address of a static field, or NULL. */
void *libjvm_static(const char *type, const char *field);
size_t libjvm_type_size(const char *type); /* 0 = unknown */
bool libjvm_int_constant(const char *name, int32_t *ret);
bool libjvm_long_constant(const char *name, int64_t *ret);

/* feature 0 = unknown */
struct jdk_version libjvm_version(void);

/* The address range of JIT code; false = unknown. */
bool libjvm_code_cache(uint64_t *ret_low, uint64_t *ret_high);
