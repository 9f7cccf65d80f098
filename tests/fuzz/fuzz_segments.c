/*
 * A segment of the history, as a damaged disk may return it: scanned and decoded like a query does
 * it. If it begins like a record, its checksums are corrected so that the content behind them is
 * parsed too.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include "daemon/ground/mem.h"
#include "daemon/store/store_priv.h"

#define RAW_MAX (1u << 20) /* a larger one is only slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *bytes, size_t size)
{
	struct header h;

	if (size < sizeof(h))
		return;
	memcpy(&h, bytes, sizeof(h));
	h.raw_len %= RAW_MAX;
	h.zstd_len = (uint32_t)(size - sizeof(h));
	h.data_crc = (uint32_t)crc32(0, bytes + sizeof(h), h.zstd_len);
	h.header_crc = 0;
	h.header_crc = (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
	memcpy(bytes, &h, sizeof(h));
}

static void scan(int fd, size_t size)
{
	struct header h;

	(void)record_is_foreign(fd);
	for (off_t at = 0; record_next(fd, &at, &h); at = record_end(&h, at)) {
		CLEANUP(profile_freep) struct profile *p = NULL;
		CLEANUP(freep) uint8_t *zstd = NULL;

		if (at < 0 || (size_t)at > size)
			abort();
		if (record_read(fd, at, &h, &zstd) == 0)
			(void)record_decode(&h, zstd, &p);
	}
}

/* Also by contents, which must not lead behind the file's end. */
static void list(int fd, size_t size)
{
	struct index x = INDEX_NULL;

	if (index_scan_between(fd, 0, (off_t)size, &x) < 0)
		return;
	for (uint32_t i = 0; i < x.n_entries; i++)
		if (x.entries[i].at >= size)
			abort();
	index_deinit(&x);
}

static void put(int fd, const struct header *h, const uint8_t *raw, size_t len)
{
	CLEANUP(freep) uint8_t *record = NULL;
	size_t record_len;

	if (record_pack(h, raw, len, &record, &record_len) < 0 ||
	    write(fd, record, record_len) != (ssize_t)record_len)
		abort();
}

/* Contents with any entries, and records behind them. */
static void list_any(const uint8_t *data, size_t size)
{
	const struct header contents = { .start_time = CONTENTS_START };
	CLEANUP(fd_closep) int fd = memfd_create("segment", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	put(fd, &contents, data, size < RAW_MAX ? size : RAW_MAX);
	for (uint32_t pid = 1; pid < 4; pid++)
		put(fd, &(struct header){ .pid = pid }, data, 0);
	list(fd, (size_t)lseek(fd, 0, SEEK_CUR));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(fd_closep) int fd = memfd_create("segment", MFD_CLOEXEC);
	uint8_t *bytes = malloc(size + 1);

	if (fd < 0 || !bytes)
		abort();
	if (size)
		memcpy(bytes, data, size);
	for (int mended = 0; mended < 2; mended++) {
		if (pwrite(fd, bytes, size, 0) != (ssize_t)size)
			abort();
		scan(fd, size);
		list(fd, size);
		mend(bytes, size);
	}
	free(bytes);
	list_any(data, size);
	return 0;
}
