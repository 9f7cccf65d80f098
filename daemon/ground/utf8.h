/* Text from outside the daemon, made safe to log, to print and to put into any format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The character at @s: its bytes (1 to 4), 0 if there is no well-formed one (overlong forms,
 * surrogates, above U+10FFFF, cut) in @len bytes. Pure. @len must not be 0.
 */
size_t utf8_character(const char *s, size_t len, uint32_t *ret_code);
/* Control characters: C0, DEL, and C1 (U+0080..U+009F), which terminals obey too. */
bool utf8_is_control(uint32_t code);
/*
 * Copy @len bytes to @dst, cut to @dst_size bytes with the NUL, never inside a character: what is
 * not UTF-8 becomes '?', control characters too. Returns the length. Pure; @dst_size must not be 0.
 */
size_t utf8_copy(char *dst, size_t dst_size, const char *src, size_t len);
/*
 * Copy all @len bytes to @dst (at least 3 * @len + 1 bytes), NUL-terminated: bytes that are not
 * UTF-8 (the JVM's own encoding of NUL and of surrogates included) become U+FFFD, control
 * characters '?'. Returns the length. Pure.
 */
size_t utf8_clean(char *dst, const char *src, size_t len);
/*
 * Take out of @s, in place, every byte that is of no character: as what is left of one where text
 * was cut. Returns the new length. Pure.
 */
size_t utf8_mend(char *s);
