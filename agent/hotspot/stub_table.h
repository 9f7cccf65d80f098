/* Between stub_names.c and stub_names_sig.c. */
#pragma once

#include <stdint.h>

#define STUB_NAMES_MAX 640

struct stub_name {
	uint32_t begin, end; /* from where the code cache begins */
	uint32_t name; /* from where libjvm begins */
};

/* Sorted; of two that are written in turn. */
struct stub_table {
	uint64_t code, image; /* where those begin */
	uint32_t n;
	struct stub_name stub[STUB_NAMES_MAX];
};
extern struct stub_table *stub_table_sig; /* NULL = none */
