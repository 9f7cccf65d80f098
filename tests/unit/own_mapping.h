/* The mappings of the test itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The offset of the function in this program's file, by the mapping that contains it. */
static inline bool mapping_of(const void *address, uint64_t *begin, uint64_t *end, uint64_t *offset,
			      char *path)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];

	*begin = *end = *offset = 0;
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long b, e, o;

		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %1000s", &b, &e, &o, path) == 4 &&
		    (uintptr_t)address >= b && (uintptr_t)address < e) {
			fclose(f);
			*begin = b;
			*end = e;
			*offset = (uintptr_t)address - b + o;
			return true;
		}
	}
	if (f)
		fclose(f);
	return false;
}
