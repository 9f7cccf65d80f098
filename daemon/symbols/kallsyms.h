/*
 * Names of the kernel's functions, read once from /proc/kallsyms. Addresses are not passed on: the
 * result is a name or NULL. Trusts no line of the file.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include "daemon/ground/mem.h"
#include "daemon/symbols/packed_names.h"

#define KALLSYMS_MAX	   (1u << 20)
#define KALLSYMS_NAMES_MAX (64u << 20) /* bytes of all names */
#define KALLSYMS_NAME_MAX  PACKED_NAME_MAX
#define KALLSYMS_REACH	   (256u << 10) /* an address farther after a symbol belongs to other code */

struct kallsyms;

/* 0; -EACCES: the kernel hides its addresses; -ENODATA: no function in it; -ENOMEM. */
int kallsyms_read(FILE *from, struct kallsyms **ret);
struct kallsyms *kallsyms_free(struct kallsyms *k);
DEFINE_FREEP(struct kallsyms, kallsyms_free);
/* The function that contains @address, valid until the next call; NULL if unknown. */
const char *kallsyms_name(struct kallsyms *k, uint64_t address);
