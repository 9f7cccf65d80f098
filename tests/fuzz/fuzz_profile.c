/* Profile bytes as a segment could hold them: what decodes must encode and decode again, equal. */
#include <stdlib.h>
#include "daemon/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *lookup(void *userdata, const struct profile_process *process, const char *module,
			  uint64_t offset)
{
	(void)userdata;
	(void)process;
	return offset & 1 ? module : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p, *q, *sum;
	uint8_t *bytes;
	size_t len;

	if (profile_decode(data, size, &p) < 0)
		return 0;
	if (profile_encode(p, &bytes, &len) < 0 || profile_decode(bytes, len, &q) < 0)
		abort();
	if (q->n_rows != p->n_rows || q->n_nodes != p->n_nodes || q->n_strings != p->n_strings ||
	    q->n_frames != p->n_frames || q->n_threads != p->n_threads ||
	    q->overflow != p->overflow)
		abort();
	free(bytes);
	/* what decodes can be merged and named, whatever its tables say */
	if (profile_new(&sum) < 0 || profile_merge(sum, p, NULL) < 0 ||
	    profile_merge(sum, q, NULL) < 0)
		abort();
	profile_symbolize(sum, lookup, NULL);
	profile_free(sum);
	profile_free(p);
	profile_free(q);
	return 0;
}
