/*
 * Names of the kernel's functions, read once from /proc/kallsyms. Addresses stay in here: what goes
 * out is a name or NULL. Trusts no line of the file.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include "daemon/ground/mem.h"
#include "daemon/symbols/packed_names.h"

#define KALLSYMS_MAX	   (1u << 20)
#define KALLSYMS_NAMES_MAX (64u << 20) /* bytes of all names */
#define KALLSYMS_NAME_MAX  PACKED_NAME_MAX
#define KALLSYMS_REACH	   (256u << 10) /* farther behind a symbol is another's code */

struct kallsyms;

/* 0; -EACCES: the kernel hides its addresses; -ENODATA: no function in it; -ENOMEM. */
int kallsyms_read(FILE *from, struct kallsyms **ret);
struct kallsyms *kallsyms_free(struct kallsyms *k);
DEFINE_FREEP(struct kallsyms, kallsyms_free);
/* The function that @address lies in, until the next call; NULL if nobody knows. */
const char *kallsyms_name(struct kallsyms *k, uint64_t address);
