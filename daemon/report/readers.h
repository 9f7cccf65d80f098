/* The readers behind report_read(), one in each file, and what they share. */
#pragma once

#include "daemon/report/read.h"

int read_json(const char *bytes, size_t len, struct report_reading *r, struct profile *p);
int read_pprof(const char *bytes, size_t len, struct report_reading *r, struct profile *p);
int read_collapsed(const char *bytes, size_t len, struct report_reading *r, struct profile *p);

/* Stores the error: -EBADMSG. */
int read_wrong(struct report_reading *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a printed frame, with its mark (report_kind_mark()) or without: the kind is that of the
 * mark, else @kind; -1 = guess it from the name. */
struct profile_frame read_frame_name(struct profile *p, const char *name, int kind);
/* Removes the mark from the end of a name; returns the kind, or -1. */
int read_kind_mark(char *name);
int read_kind_by_name(const char *name); /* The kind called "c2"; -1 = none */
