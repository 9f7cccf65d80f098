/* Makes text from outside the daemon safe to log, to print and to write in any format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes the character at @s. Returns its length in bytes (1 to 4), or 0 if it is not well-formed
 * (overlong, a surrogate, above U+10FFFF, or cut after @len bytes). @len must not be 0. Pure.
 */
size_t utf8_character(const char *s, size_t len, uint32_t *ret_code);
/* Is it a control character: C0, DEL, or C1 (U+0080..U+009F), which terminals obey as well? */
bool utf8_is_control(uint32_t code);
/*
 * Copies @len bytes to @dst, cut to @dst_size bytes including the NUL, but not inside a character.
 * Bytes that are not UTF-8 and those of control characters become '?'. Returns the length.
 * @dst_size must not be 0. Pure.
 */
size_t utf8_copy(char *dst, size_t dst_size, const char *src, size_t len);
/*
 * Copies all @len bytes to @dst (at least 3 * @len + 1 bytes), NUL-terminated. Bytes that are not
 * UTF-8, also the JVM's own encoding of NUL and of surrogates, become U+FFFD, and control
 * characters
 * '?'. Returns the length. Pure.
 */
size_t utf8_clean(char *dst, const char *src, size_t len);
/*
 * Removes from @s, in place, every byte that is not part of a whole character, such as the rest of
 * one where the text was cut. Returns the new length. Pure.
 */
size_t utf8_mend(char *s);
