/* Profile bytes as a segment or a journal could hold them: what decodes must encode and decode
 * again, equal. */
#include <stdlib.h>
#include <string.h>
#include "daemon/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *lookup(void *userdata, const struct profile_process *process, const char *module,
			  uint64_t offset)
{
	(void)userdata;
	(void)process;
	return offset & 1 ? module : NULL;
}

/* Two slices of a journal: the first @cut bytes, and the rest. */
static void read_slices(const uint8_t *data, size_t size, size_t cut)
{
	struct profile_slices *s;
	struct profile *p, *sum;

	if (profile_slices_new(&s) < 0 || profile_new(&sum) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		if (profile_slices_read(s, i ? data + cut : data, i ? size - cut : cut, &p) == 0 &&
		    profile_merge(sum, p, NULL) < 0)
			abort();
	profile_free(sum);
	profile_slices_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p, *q, *sum;
	uint8_t *bytes;
	size_t len;

	if (size > 4 && memcmp(data, "KPRJ", 4) == 0) {
		const uint8_t *second = memmem(data + 4, size - 4, "KPRJ", 4);

		read_slices(data, size, second ? (size_t)(second - data) : size);
	}
	if (profile_decode(data, size, &p) < 0)
		return 0;
	if (profile_encode(p, &bytes, &len) < 0 || profile_decode(bytes, len, &q) < 0)
		abort();
	if (q->n_rows != p->n_rows || q->n_nodes != p->n_nodes || q->n_strings != p->n_strings ||
	    q->n_frames != p->n_frames || q->n_threads != p->n_threads ||
	    q->overflow != p->overflow)
		abort();
	free(bytes);
	/* a decoded profile can be merged and named, whatever its tables contain */
	if (profile_new(&sum) < 0 || profile_merge(sum, p, NULL) < 0 ||
	    profile_merge(sum, q, NULL) < 0)
		abort();
	profile_symbolize(sum, lookup, NULL);
	profile_free(sum);
	profile_free(p);
	profile_free(q);
	return 0;
}
