/* The readers behind report_read(), one a file, and what they share. */
#pragma once

#include "daemon/report/read.h"

int read_json(const char *bytes, size_t len, struct report_reading *r, struct profile *p);
int read_pprof(const char *bytes, size_t len, struct report_reading *r, struct profile *p);
int read_collapsed(const char *bytes, size_t len, struct report_reading *r, struct profile *p);

/* Says what is wrong: -EBADMSG. */
int read_wrong(struct report_reading *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A frame as it is printed, with its mark (report_kind_mark()) or none: its kind is what the mark
 * says, else @kind; -1 = what the name looks like. */
struct profile_frame read_frame_name(struct profile *p, const char *name, int kind);
/* Takes the mark off the end of a name; the kind, or -1. */
int read_kind_mark(char *name);
int read_kind_by_name(const char *name); /* "c2"; -1 = none is called so */
