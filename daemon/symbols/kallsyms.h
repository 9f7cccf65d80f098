/*
 * Names the kernel's functions. /proc/kallsyms is read once; no line of it is trusted. Addresses go
 * in, names or NULL come out: no address is passed on.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include "daemon/ground/mem.h"
#include "daemon/symbols/packed_names.h"

#define KALLSYMS_MAX	   (1u << 20)
#define KALLSYMS_NAMES_MAX (64u << 20) /* bytes of all names together */
#define KALLSYMS_NAME_MAX  PACKED_NAME_MAX
#define KALLSYMS_REACH	   (256u << 10) /* bytes after a symbol that may be its code */

struct kallsyms;

/* 0; -EACCES: the kernel hides its addresses; -ENODATA: the file has no function; -ENOMEM. */
int kallsyms_read(FILE *from, struct kallsyms **ret);
struct kallsyms *kallsyms_free(struct kallsyms *k);
DEFINE_FREEP(struct kallsyms, kallsyms_free);
/* The function that contains @address, valid until the next call; NULL = unknown. */
const char *kallsyms_name(struct kallsyms *k, uint64_t address);
