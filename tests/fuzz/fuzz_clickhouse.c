/* Takes three answers of a server, one after the other; the first four bytes are the lengths of
 * the first two. If they make a profile, that profile can be written in every format. */
#include <stdlib.h>
#include "daemon/clickhouse/answer.h"
#include "daemon/report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t length_of(const uint8_t *data, size_t size, size_t at)
{
	size_t n = at + 1 < size ? (size_t)data[at] << 8 | data[at + 1] : 0;

	return n < size ? n : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct clickhouse_answers a = { 0 };
	struct clickhouse_answered what;
	struct profile *p;
	size_t left = size > 4 ? size - 4 : 0, len;
	char *out;

	if (size <= 4)
		return 0;
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++) {
		size_t n = i + 1 < CLICKHOUSE_TABLES ? length_of(data, size, 2 * i) : left;

		n = n < left ? n : left;
		a.bytes[i] = data + size - left;
		a.len[i] = n;
		left -= n;
	}
	if (clickhouse_profile(&a, &what, &p) < 0)
		return 0;
	for (unsigned f = 0; f < REPORT_FORMAT_COUNT; f++)
		if (report_write(p, (enum report_format)f, NULL, &out, &len) == 0)
			free(out);
	profile_free(p);
	return 0;
}
