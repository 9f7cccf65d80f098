/* See owner.h. Shared by the daemon, which leaves such a JVM alone, and the injector. */
#include "daemon/core/owner.h"

#include <string.h>

bool owner_says_no(const char *environ, size_t len)
{
	static const char name[] = OWNER_VARIABLE "=";
	size_t name_len = sizeof(name) - 1, n;

	for (const char *p = environ, *end = environ + len; p < end; p += n + 1) {
		n = strnlen(p, (size_t)(end - p));
		if (n > name_len && memcmp(p, name, name_len) == 0 &&
		    !(n == name_len + 1 && p[name_len] == '0'))
			return true;
	}
	return false;
}
