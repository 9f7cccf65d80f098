/* A profile and its baseline, as diff.c combines them and the writers show them. */
#pragma once

#include "daemon/report/formats.h"

struct against_method {
	const char *name;
	uint64_t self, total, base_self, base_total; /* unscaled, without the factor */
};

struct against {
	const char *title; /* of the baseline */
	const char *by; /* "time" or "total" */
	double factor; /* of the baseline's weights */
	uint64_t begin_real_ns, end_real_ns, samples, weight; /* of the baseline */
	uint64_t *row_samples, *row_weights; /* the baseline's weights, by row of the profile */
	struct against_method *methods; /* the largest difference in self time first */
	uint32_t n_methods;
};

/* The increase of a method's weight, or of the whole, in the unit of the event. */
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
