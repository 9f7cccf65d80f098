/*
 * The index of a segment, as a damaged disk may return it. The checksums are corrected so that the
 * content behind them is parsed too: whatever it is, reading stays inside of it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include "daemon/ground/mem.h"
#include "daemon/store/index_file.h"
#include "daemon/store/store_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *bytes, size_t size)
{
	struct index_header h;
	size_t len;

	if (size < sizeof(h))
		return;
	memcpy(&h, bytes, sizeof(h));
	h.magic = INDEX_MAGIC;
	h.covered = 0;
	h.number = 0;
	h.n_processes %= 64;
	h.strings_len = h.strings_len % 4096 + 1;
	h.table_at %= size;
	len = h.n_processes * sizeof(struct index_process) + h.strings_len;
	if (len <= size - h.table_at)
		h.table_crc = (uint32_t)crc32(0, bytes + h.table_at, (uInt)len);
	h.crc = 0;
	h.crc = (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
	memcpy(bytes, &h, sizeof(h));
}

static void read_all(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("index", MFD_CLOEXEC);
	struct index x;

	if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size)
		abort();
	if (index_read_fd(fd, 0, 0, &x) < 0)
		return;
	for (uint32_t i = 0; i < x.n_processes; i++) {
		CLEANUP(freep) struct index_entry *entries = NULL;
		const struct index_process *q = &x.processes[i];

		if (index_find(&x, q->pid, q->start_time) != q)
			abort();
		for (int text = 0; text < INDEX_TEXT_COUNT; text++)
			if (strlen(index_string(&x, q, (enum index_text)text)) >= x.strings_len)
				abort();
		if (q->n <= 4096)
			(void)index_entries(&x, q, &entries);
	}
	index_deinit(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = calloc(1, size + 1);

	if (!bytes)
		abort();
	if (size)
		memcpy(bytes, data, size);
	read_all(bytes, size);
	mend(bytes, size);
	read_all(bytes, size);
	free(bytes);
	return 0;
}
