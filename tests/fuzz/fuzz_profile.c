/* Profile bytes as a segment could hold them: what decodes must encode and decode again, equal. */
#include <stdlib.h>
#include "daemon/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p, *q;
	uint8_t *bytes;
	size_t len;

	if (profile_decode(data, size, &p) < 0)
		return 0;
	if (profile_encode(p, &bytes, &len) < 0 || profile_decode(bytes, len, &q) < 0)
		abort();
	if (q->n_rows != p->n_rows || q->n_nodes != p->n_nodes || q->n_strings != p->n_strings)
		abort();
	free(bytes);
	profile_free(p);
	profile_free(q);
	return 0;
}
