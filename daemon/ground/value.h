/* Values as people write them, in settings, on command lines and in queries: "10ms", "512KiB",
 * "1%". Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 0, or -EINVAL (not such a value at all) or -ERANGE (does not fit 64 bits); @ret unchanged then.
 */
/*
 * "10ms", "1.5h", "2m30s": numbers with units (ns us ms s m h d), each unit smaller than the one
 * before. Everywhere the same: in the settings file, on the command line, in the API.
 */
int value_duration_ns(const char *text, uint64_t *ret);
/* The same, and a number without a unit is seconds: how far back, for how long. */
int value_length_ns(const char *text, uint64_t *ret);
/* "1", "1.5": a number without its unit. */
bool value_is_bare(const char *text);
int value_bytes(const char *text, uint64_t *ret); /* B KiB MiB GiB TiB, kB MB GB TB */
int value_permille(const char *text, uint64_t *ret); /* "1%", "0.5%" */
int value_count(const char *text, uint64_t *ret); /* digits */
int value_bool(const char *text, bool *ret); /* true false yes no on off */

/* The largest unit that divides @ns (bytes) without a rest: "30s"; for messages. */
const char *value_duration_text(uint64_t ns, char buf[32]);
const char *value_bytes_text(uint64_t bytes, char buf[32]);
