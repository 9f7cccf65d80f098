/* Any bytes as an ELF file: no crash, and the result is a table that the daemon accepts. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/symbols/read_elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	uint8_t *bytes = NULL;
	struct symbol_table table;
	size_t len;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (read_elf(fd, NULL, &bytes, &len) == 0) {
		if (table_check(bytes, len, &table) < 0)
			abort();
		for (uint64_t offset = 0; offset < 65536; offset += 251)
			(void)table_find(&table, offset);
	}
	free(bytes);
	close(fd);
	/* and the same bytes as a table of functions */
	bytes = malloc(size + 1);
	for (size_t i = 0; bytes && i < size; i++)
		bytes[i] = data[i];
	if (bytes && table_check(bytes, size, &table) == 0)
		(void)table_find(&table, 4096);
	free(bytes);
	return 0;
}
