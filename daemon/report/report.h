/* Writes a profile in a format a person or another tool reads. Pure: profile in, bytes out. */
#pragma once

#include <stddef.h>
#include "daemon/profile/profile.h"

enum report_format {
	REPORT_HTML, /* self-contained flame graph page */
	REPORT_COLLAPSED, /* root;...;leaf weight_ns */
	REPORT_TXT, /* method table and top traces */
	REPORT_PPROF, /* gzipped pprof protobuf */
	REPORT_JSON,
	REPORT_JFR, /* JDK Flight Recorder */
	REPORT_SPEEDSCOPE, /* https://www.speedscope.app */
	REPORT_OTLP, /* ExportProfilesServiceRequest, what a client of OTLP sends */
	REPORT_OTLP_JSON,
	REPORT_FORMAT_COUNT
};

/* By name ("html", "pb.gz" or "pprof", ...), or by the file's suffix, the longest that fits;
 * -EINVAL if neither is known. */
int report_format_by_name(const char *name);
int report_format_by_path(const char *path);
const char *report_format_name(enum report_format format);
/* "html, collapsed, txt or json": the names of all; with @suffixes ".html, ...". @buf. */
const char *report_format_list(bool suffixes, char *buf, size_t size);
const char *report_content_type(enum report_format format);

struct report_options {
	const char *title; /* NULL = made from the processes in it */
	bool threads; /* collapsed/html/speedscope: threads apart */
	bool merge; /* several JVMs as if they were one */
	bool annotate; /* collapsed/pprof: frames end with their kind, report_kind_mark() */
	bool no_labels; /* pprof: samples without labels, which are series elsewhere */
	unsigned events; /* bits 1 << enum wire_event; 0 = CPU. Several where report_takes() them */
	bool idle; /* waits for work too */
	bool reverse; /* collapsed/html: leaf first, callers below */
	const char *include, *exclude; /* patterns.h; borrowed; NULL = none */
};
/* Can @format hold @events (bits) in one file? false: @why has a sentence. */
bool report_takes(enum report_format format, unsigned events, char *why, size_t why_size);
/* Can it be leaf first? */
bool report_reverses(enum report_format format, char *why, size_t why_size);
/* malloc'ed bytes (NUL-terminated for text) in @ret. 0 or -errno; -EINVAL: a pattern is wrong,
 * -ETIME: it takes too long. */
int report_write(const struct profile *p, enum report_format format,
		 const struct report_options *options, char **ret, size_t *ret_len);
/* Of what the options ask for: samples in it, and how many were lost on the way. */
uint64_t report_samples(const struct profile *p, const struct report_options *options);
uint64_t report_dropped(const struct profile *p, const struct report_options *options);
/* How a frame came to run, as other tools mark it: "_[0]" interpreted, "_[1]" C1, "_[j]" C2,
 * "_[i]" inlined, "_[k]" kernel; "" else. */
const char *report_kind_mark(unsigned kind);
/* "java.lang.String.indexOf", "[libjvm.so] Parker::park(bool, long)", "[unknown]": how a frame is
 * printed everywhere. Returns bytes written, cut to @size, NUL-terminated. */
size_t report_frame_name(const struct profile *p, const struct profile_frame *f, char *buf,
			 size_t size);
