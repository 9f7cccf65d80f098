/* Shared by method.c, which owns the stores, and method_sig.c, which fills them. */
#pragma once

#include <stdint.h>
#include "agent/hotspot/method.h"

#define STORE_SLOTS 16384u /* hash slots; twice as many as copies fit */

struct method_store {
	uint32_t used; /* bytes of copies[] in use */
	uint32_t full; /* 1 = a copy did not fit */
	uint64_t slots[STORE_SLOTS]; /* struct method_copy *, 0 = free */
	uint8_t copies[METHOD_STORE_BYTES];
};

extern struct method_store *method_store_sig; /* NULL = none */

/* A reader of UNSIGNED5 numbers (unsigned5.hpp): digits to base 64, the lowest first; a byte below
 * 192 is the last. */
struct unsigned5 {
	uint64_t at;
	uint64_t word; /* the last aligned word loaded */
	uint64_t word_at; /* its address; 1 = no word was loaded yet */
};
uint8_t unsigned5_byte_sig(struct unsigned5 *r);
uint32_t unsigned5_next_sig(struct unsigned5 *r);
