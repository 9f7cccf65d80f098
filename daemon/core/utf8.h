/* Text from outside the daemon, made safe to log, to print and to put into any format. */
#pragma once

#include <stddef.h>

/*
 * Copy @len bytes to @dst, cut to @dst_size bytes with the NUL, never inside a character: what is
 * not UTF-8 (overlong forms, surrogates) becomes '?', control characters too. Returns the length.
 * Pure; @dst_size must not be 0.
 */
size_t utf8_copy(char *dst, size_t dst_size, const char *src, size_t len);
