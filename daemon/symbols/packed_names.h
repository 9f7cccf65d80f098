/*
 * Very many names by number, deflated in blocks: they take a fifth of their size. Recently used
 * names are cached, others cost some microseconds.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

#define PACKED_NAME_MAX 127

struct packed_names;

/* Name @i, borrowed until the next call; at most PACKED_NAME_MAX bytes long. */
typedef const char *packed_names_fn(void *userdata, uint32_t i);

/* 0 or -ENOMEM. @name is called for 0 to @n - 1, once each. */
int packed_names_new(packed_names_fn *name, void *userdata, uint32_t n, struct packed_names **ret);
struct packed_names *packed_names_free(struct packed_names *p);
DEFINE_FREEP(struct packed_names, packed_names_free);
/* Valid until the next call; NULL = there is none, or no memory. */
const char *packed_names_get(struct packed_names *p, uint32_t i);
