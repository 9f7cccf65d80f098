/* Values of settings as people write them: "10ms", "512KiB", "1%". Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 0, or -EINVAL (not such a value at all) or -ERANGE (does not fit 64 bits); @ret unchanged then.
 */
int value_duration_ns(const char *text, uint64_t *ret); /* ns us ms s m h d */
int value_bytes(const char *text, uint64_t *ret); /* B KiB MiB GiB TiB */
int value_permille(const char *text, uint64_t *ret); /* "1%", "0.5%" */
int value_count(const char *text, uint64_t *ret); /* digits */
int value_bool(const char *text, bool *ret); /* true false yes no on off */

/* The largest unit that divides @ns (bytes) without a rest: "30s"; for messages. */
const char *value_duration_text(uint64_t ns, char buf[32]);
const char *value_bytes_text(uint64_t bytes, char buf[32]);
