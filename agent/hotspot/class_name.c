#include <stdbool.h>
#include <string.h>
#include "agent/hotspot/class_name.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The length of the name without an address at its end: "/0x00007f01", ".0x…", "+0x…" (hidden
 * classes) or "/123456" (JDK 8). */
static size_t without_address(const char *name, size_t n)
{
	size_t digits = n;

	while (digits && is_hex(name[digits - 1]))
		digits--;
	if (digits == n)
		return n;
	if (digits >= 3 && name[digits - 1] == 'x' && name[digits - 2] == '0')
		digits -= 2;
	else
		for (size_t i = digits; i < n; i++)
			if (name[i] > '9')
				return n; /* a package or class named "/cafe" */
	if (digits < 2 ||
	    (name[digits - 1] != '/' && name[digits - 1] != '.' && name[digits - 1] != '+'))
		return n;
	return digits - 1;
}

void names_normalise_class(char *signature)
{
	static const char lambda[] = "$$Lambda";
	size_t n = strlen(signature);
	char *at;

	if (n >= 2 && signature[0] == 'L' && signature[n - 1] == ';') {
		memmove(signature, signature + 1, n - 2);
		n -= 2;
	}
	signature[n] = '\0';
	signature[without_address(signature, n)] = '\0';
	at = strstr(signature, lambda);
	if (at && (at[sizeof(lambda) - 1] == '$' || at[sizeof(lambda) - 1] == '/'))
		at[sizeof(lambda) - 1] = '\0';
}
