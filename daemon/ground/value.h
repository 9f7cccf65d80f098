/* Parses values as users write them, in settings, on command lines and in queries of the API:
 * "10ms", "512KiB", "1%". Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All return 0, or -EINVAL (no such value) or -ERANGE (beyond 64 bits) and leave @ret unchanged. */
/* "10ms", "1.5h", "2m30s": numbers with units (ns us ms s m h d), each unit smaller than the one
 * before. */
int value_duration_ns(const char *text, uint64_t *ret);
/* The same for a length of time, in which a number without a unit is seconds. */
int value_length_ns(const char *text, uint64_t *ret);
/* Is it a number without a unit, "1" or "1.5"? */
bool value_is_bare(const char *text);
int value_bytes(const char *text, uint64_t *ret); /* B KiB MiB GiB TiB, kB MB GB TB */
int value_permille(const char *text, uint64_t *ret); /* "1%", "0.5%" */
int value_count(const char *text, uint64_t *ret); /* digits */
int value_bool(const char *text, bool *ret); /* true false yes no on off */

/* Write @ns or @bytes with the largest unit that divides it, "30s", for messages. Return @buf. */
const char *value_duration_text(uint64_t ns, char buf[32]);
const char *value_bytes_text(uint64_t bytes, char buf[32]);
