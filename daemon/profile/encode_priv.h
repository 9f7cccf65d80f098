/* The bytes of profiles: what encode.c, decode.c and slices.c share. */
#pragma once

#include "daemon/profile/profile_priv.h"

#define PROFILE_MAGIC	    "KPRF"
#define PROFILE_MAGIC_SLICE "KPRJ"
/* with trace ids; earlier daemons skip such a window (store/record.c) */
#define PROFILE_VERSION_IDS 6

/* Bytes that are read. After bad = true every number is 0. */
struct profile_in {
	const uint8_t *p, *end;
	unsigned version, events; /* events: how many kinds of events its writer knew */
	bool bad;
};

uint64_t profile_decode_number(struct profile_in *in);
uint32_t profile_decode_below(struct profile_in *in, uint64_t limit);
/* A count of entries that take at least @min_bytes each. */
uint32_t profile_decode_count(struct profile_in *in, uint32_t max, size_t min_bytes);
uint64_t profile_decode_length(struct profile_in *in); /* of a string */
/* What comes before the tables. 0 or -EBADMSG. */
int profile_decode_head(struct profile_in *in, struct profile *p);
/* One entry each; its references are below the lengths of the tables of @p. */
void profile_decode_frame(struct profile_in *in, const struct profile *p,
			  struct profile_frame *ret);
void profile_decode_process(struct profile_in *in, const struct profile *p,
			    struct profile_process *ret);
void profile_decode_thread(struct profile_in *in, const struct profile *p,
			   struct profile_thread *ret);
void profile_decode_row(struct profile_in *in, const struct profile *p, struct profile_row *ret);

/* Sets bit @i; false = no memory. */
bool profile_bits_set(struct profile_bits *b, uint32_t i);
static inline bool profile_bits_has(const struct profile_bits *b, uint32_t i)
{
	return i < b->n && b->words[i / 64] >> i % 64 & 1;
}
