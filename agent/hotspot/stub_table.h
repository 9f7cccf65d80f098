/* Shared by stub_names.c, which fills the table, and stub_names_sig.c, which searches it. */
#pragma once

#include <stdint.h>

#define STUB_NAMES_MAX 640

struct stub_name {
	uint32_t begin, end; /* offset in the code cache */
	uint32_t name; /* offset in libjvm */
};

/* A sorted table. There are two, so that handlers can read one while the other is written. */
struct stub_table {
	uint64_t code, image; /* addresses of the code cache and of libjvm */
	uint32_t n;
	struct stub_name stub[STUB_NAMES_MAX];
};
extern struct stub_table *stub_table_sig; /* NULL = none */
