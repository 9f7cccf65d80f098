/* A profile compared with a baseline: diff.c makes it, and the formats show it. */
#pragma once

#include "daemon/report/formats.h"

struct against_method {
	const char *name;
	uint64_t self, total, base_self,
		base_total; /* as they are: the baseline's are not multiplied by the factor */
};

struct against {
	const char *title; /* of the baseline */
	const char *by; /* "time" or "total" */
	double factor; /* by which the baseline's weights are multiplied */
	uint64_t begin_real_ns, end_real_ns, samples, weight; /* of the baseline */
	uint64_t *row_samples, *row_weights; /* by row of the profile */
	struct against_method *methods; /* largest difference of self time first */
	uint32_t n_methods;
};

/* How much the weight of a method, or of everything, has grown, in the event's unit. */
static inline double against_grown(const struct against *a, uint64_t now, uint64_t base)
{
	return (double)now - a->factor * (double)base;
}

void write_txt_against(struct text_out *t, const struct profile *p, const struct report_options *o,
		       const struct against *a);
void write_json_against(struct text_out *t, const struct profile *p, const struct report_options *o,
			const struct against *a);
void write_html_against(struct text_out *t, const struct profile *p, const struct report_options *o,
			const struct against *a);
