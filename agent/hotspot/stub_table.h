/* Between stub_names.c and stub_names_sig.c. */
#pragma once

#include <stdint.h>

#define STUB_NAMES_MAX 640

struct stub_name {
	uint32_t begin, end; /* offset in the code cache */
	uint32_t name; /* offset in libjvm */
};

/* A sorted table; there are two, written in turn. */
struct stub_table {
	uint64_t code, image; /* where those begin */
	uint32_t n;
	struct stub_name stub[STUB_NAMES_MAX];
};
extern struct stub_table *stub_table_sig; /* NULL = none */
