/* Text from a target, made safe to print and to put into any format. */
#pragma once

#include <stddef.h>

/*
 * Copy @len bytes to @dst (at least 3 * @len + 1 bytes), NUL-terminated: bytes that are not UTF-8
 * (the JVM's own encoding of NUL and of surrogates included) become U+FFFD, control characters '?'.
 * Returns the length.
 */
size_t text_clean(char *dst, const char *src, size_t len);
