/* Tables of functions of the libraries in the directory STRIPPED, which
 * daemon/symbols/CMakeLists.txt builds. */
#pragma once

#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include "daemon/symbols/read_elf.h"
#include "daemon/symbols/table.h"
#include "daemon/ground/mem.h"

static inline const struct table_entry *entry_of(const struct symbol_table *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_entries; i++)
		if (strcmp(t->names + t->entries[i].name, name) == 0)
			return &t->entries[i];
	return NULL;
}

/* The flags of the table of @library, and whether the private function has its name in it. */
static inline bool names_the_private(const char *library, const struct debug_places *places,
				     uint32_t *ret_flags)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	CLEANUP(fd_closep) int fd = -1;
	char path[300];
	struct symbol_table t;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", STRIPPED, library);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read_elf(fd, places, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_non_null(entry_of(&t, "public_function"));
	*ret_flags = t.flags;
	return entry_of(&t, "private_function");
}
