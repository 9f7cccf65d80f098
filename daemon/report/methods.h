/* The table of methods that `report` prints and `top` shows. */
#pragma once

#include "daemon/report/report.h"

/* What all tables of one profile need: the names of its frames and the children of its nodes. */
struct report_index {
	char **names; /* by frame; owned */
	uint32_t *ids; /* by frame: the number of its printed name */
	uint32_t n, n_frames; /* number of different names */
	uint32_t *first, *next; /* by node: its first child, its next sibling; 0 = none */
};
int report_index_new(const struct profile *p, struct report_index **ret); /* 0 or -ENOMEM */
struct report_index *report_index_free(struct report_index *x);
DEFINE_FREEP(struct report_index, report_index_free);

struct report_method {
	const char *name; /* borrowed from the index */
	uint64_t samples, total, self;
	uint32_t below; /* private: its frames on the current path */
};

struct report_methods {
	struct report_method *methods; /* largest first, by total or self */
	uint32_t n;
};

enum report_order { REPORT_BY_SELF, REPORT_BY_TOTAL };

/* @process: an index, or UINT32_MAX for all. Walks once over rows and nodes. 0 or -ENOMEM. */
int report_methods(const struct profile *p, const struct report_index *x, uint32_t process,
		   enum report_order order, struct report_methods *ret);
void report_methods_free(struct report_methods *m);
