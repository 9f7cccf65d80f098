/* Writes a profile in a format for people or for another tool. Pure: profile in, bytes out. */
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
	REPORT_OTLP, /* ExportProfilesServiceRequest, the request of an OTLP client */
	REPORT_OTLP_JSON,
	REPORT_FORMAT_COUNT
};

/* By name ("html", "pb.gz" or "pprof", ...), or by the file's suffix, the longest that matches;
 * -EINVAL if neither is known. */
int report_format_by_name(const char *name);
int report_format_by_path(const char *path);
const char *report_format_name(enum report_format format);
/* "html, collapsed, txt or json": all names; with @suffixes ".html, ...". @buf. */
const char *report_format_list(bool suffixes, char *buf, size_t size);
const char *report_content_type(enum report_format format);

struct report_options {
	const char *title; /* NULL = made from the processes in the profile */
	bool threads; /* collapsed/html/speedscope: keep threads apart */
	bool merge; /* merge several JVMs */
	bool annotate; /* collapsed/pprof: add report_kind_mark() to frames */
	bool no_labels; /* pprof: no labels on samples but span_id, because some servers make a
			 * series of each */
	unsigned events; /* bits 1 << enum wire_event; 0 = CPU. Several if report_takes() allows */
	bool idle; /* also waits for work */
	bool reverse; /* collapsed/html: leaf first, with callers below */
	const char *include, *exclude; /* patterns.h; borrowed; NULL = none */
};
/* Can @format hold @events (bits) in one file? false: @why has a sentence. */
bool report_takes(enum report_format format, unsigned events, char *why, size_t why_size);
/* Does the format support leaf first? */
bool report_reverses(enum report_format format, char *why, size_t why_size);
/* malloc'ed bytes (NUL-terminated for text) in @ret. 0 or -errno; -EINVAL: a pattern is invalid,
 * -ETIME: matching takes too long. */
int report_write(const struct profile *p, enum report_format format,
		 const struct report_options *options, char **ret, size_t *ret_len);
/* The numbers of samples and of losses of what the options select. */
uint64_t report_samples(const struct profile *p, const struct report_options *options);
uint64_t report_dropped(const struct profile *p, const struct report_options *options);
/* How a frame ran, with the marks of other tools: "_[0]" interpreted, "_[1]" C1, "_[j]" C2, "_[i]"
 * inlined, "_[k]" kernel; "" otherwise. */
const char *report_kind_mark(unsigned kind);
/* "java.lang.String.indexOf", "[libjvm.so] Parker::park(bool, long)", "[unknown]": the printed form
 * of a frame in all outputs. Returns bytes written, cut to @size, NUL-terminated. */
size_t report_frame_name(const struct profile *p, const struct profile_frame *f, char *buf,
			 size_t size);
