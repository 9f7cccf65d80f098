/* The table of methods that `report` prints and `top` shows. */
#pragma once

#include "daemon/report/report.h"

struct report_method {
	const char *name;
	uint64_t samples, total, self;
	uint32_t last_row; /* private: counted once a stack, also when it recurses */
};

struct report_methods {
	struct report_method *methods; /* by total or self, largest first */
	uint32_t n;
	char **names; /* private */
	uint32_t n_names;
};

enum report_order { REPORT_BY_SELF, REPORT_BY_TOTAL };

/* @process: index, or UINT32_MAX for all. 0 or -ENOMEM. */
int report_methods(const struct profile *p, uint32_t process, enum report_order order,
		   struct report_methods *ret);
void report_methods_free(struct report_methods *m);
