/* Names of the folders below /tmp/kindling in a target: versions of the agent. The target can
 * create any names there: one that is not a version is neither followed nor printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define VERSION_BYTES 32 /* with its NUL */

/* @text need not end at @len. */
static inline bool version_is(const char *text, size_t len)
{
	static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz.+-~";

	return len > 0 && len < VERSION_BYTES && text[0] >= '0' && text[0] <= '9' &&
	       strspn(text, allowed) >= len;
}
