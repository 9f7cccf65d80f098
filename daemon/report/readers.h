/* The formats behind report_read(), each in a file of its own, and what they share. */
#pragma once

#include "daemon/report/read.h"

int read_json(const char *bytes, size_t len, struct report_reading *r, struct profile *p);
int read_pprof(const char *bytes, size_t len, struct report_reading *r, struct profile *p);
int read_collapsed(const char *bytes, size_t len, struct report_reading *r, struct profile *p);

/* Stores the error in r->why and returns -EBADMSG. */
int read_wrong(struct report_reading *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Makes a frame of a printed name. Its kind is that of the mark (report_kind_mark()) at its end,
 * else @kind; -1 = guess it from the name. */
struct profile_frame read_frame_name(struct profile *p, const char *name, int kind);
/* Cuts the mark off a name; returns its kind, or -1. */
int read_kind_mark(char *name);
int read_kind_by_name(const char *name); /* the kind that is called "c2"; -1 = none */
