/* The names of the directories below /tmp/kindling in a target, which are versions of the agent.
 * The target can create any name there; one that is not a version is neither opened nor printed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define VERSION_BYTES 32 /* including the NUL */

/* Are the first @len bytes of @text a version? @text must be NUL-terminated, there or later. */
static inline bool version_is(const char *text, size_t len)
{
	static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz.+-~";

	return len > 0 && len < VERSION_BYTES && text[0] >= '0' && text[0] <= '9' &&
	       strspn(text, allowed) >= len;
}
