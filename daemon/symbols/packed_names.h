/*
 * Keeps very many names by number, deflated in blocks, in a fifth of their size. Names that were
 * used lately are cached; others cost some microseconds.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

#define PACKED_NAME_MAX 127

struct packed_names;

/* Returns name @i, valid until the next call, of at most PACKED_NAME_MAX bytes. */
typedef const char *packed_names_fn(void *userdata, uint32_t i);

/* Packs the names 0 to @n - 1, for each of which @name is called once. 0 or -ENOMEM. */
int packed_names_new(packed_names_fn *name, void *userdata, uint32_t n, struct packed_names **ret);
struct packed_names *packed_names_free(struct packed_names *p);
DEFINE_FREEP(struct packed_names, packed_names_free);
/* Name @i, valid until the next call; NULL = there is none, or no memory. */
const char *packed_names_get(struct packed_names *p, uint32_t i);
