/* See object_header.h. */
#include "agent/hotspot/object_header.h"

#include "agent/base/guard.h"

#define KLASS_AT    8 /* behind the mark word */
#define KLASS_SHIFT 42 /* in a compact header */

struct object_header_layout object_header_sig;

uint64_t object_klass_sig(uint64_t object)
{
	const struct object_header_layout *h = &object_header_sig;
	uint64_t narrow;

	if (!object)
		return 0;
	if (h->compact)
		narrow = load64_sig(object) >> KLASS_SHIFT;
	else if (h->narrow)
		narrow = load32_sig(object + KLASS_AT);
	else
		return load64_sig(object + KLASS_AT);
	return narrow ? h->narrow_base + (narrow << h->narrow_shift) : 0;
}
