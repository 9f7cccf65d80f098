/* See time_folded.h. */
#include "daemon/timeline/time_folded.h"

void time_folded_add(struct time_folded_slice *slices, uint64_t number, const struct time_row *row,
		     bool ended)
{
	struct time_folded_slice *s = &slices[number % TIME_FOLDED_SLICES];

	if (s->number > number)
		return;
	if (s->number != number)
		*s = (struct time_folded_slice){ .number = number };
	s->threads += ended;
	time_row_add(&s->row, row);
}

uint32_t time_folded_sum(const struct time_folded_slice *slices, uint64_t first, uint64_t last,
			 struct time_row *ret)
{
	uint32_t threads = 0;

	*ret = (struct time_row){ .ended = true };
	for (uint32_t i = 0; i < TIME_FOLDED_SLICES; i++) {
		const struct time_folded_slice *s = &slices[i];

		if (!s->number || s->number < first || s->number > last)
			continue;
		threads += s->threads;
		time_row_add(ret, &s->row);
	}
	return threads;
}
