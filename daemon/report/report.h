/* Writes a profile in a format for people or for another tool. Pure: a profile in, bytes out. */
#pragma once

#include <stddef.h>
#include "daemon/profile/profile.h"

enum report_format {
	REPORT_HTML, /* a page with a flame graph, in one file */
	REPORT_COLLAPSED, /* root;...;leaf weight_ns */
	REPORT_TXT, /* a table of methods, and the hottest stacks */
	REPORT_PPROF, /* gzipped pprof protobuf */
	REPORT_JSON,
	REPORT_JFR, /* JDK Flight Recorder */
	REPORT_SPEEDSCOPE, /* https://www.speedscope.app */
	REPORT_OTLP, /* ExportProfilesServiceRequest, the request of an OTLP client */
	REPORT_OTLP_JSON,
	REPORT_FORMAT_COUNT
};

/* Finds a format by its name ("html", "pb.gz" or "pprof", ...), or by a file's longest known
 * suffix; -EINVAL if it is unknown. */
int report_format_by_name(const char *name);
int report_format_by_path(const char *path);
const char *report_format_name(enum report_format format);
/* Lists all formats: "html, collapsed, txt or json"; with @suffixes ".html, ...". Returns @buf. */
const char *report_format_list(bool suffixes, char *buf, size_t size);
const char *report_content_type(enum report_format format);

struct report_options {
	const char *title; /* NULL = made of the profile's processes */
	bool threads; /* collapsed, html, speedscope: threads are kept apart */
	bool merge; /* several JVMs are merged */
	bool annotate; /* collapsed, pprof: frames get their report_kind_mark() */
	bool no_labels; /* pprof: samples get no labels, of which some servers make series, but
			 * span_id */
	unsigned events; /* bits 1 << enum wire_event; 0 = CPU. Several if report_takes() allows */
	bool idle; /* waits for work, too */
	bool reverse; /* collapsed, html: the leaf first, and its callers below it */
	const char *include, *exclude; /* see patterns.h; borrowed; NULL = none */
};
/* Can one file of @format hold @events (bits)? false: @why has a sentence. */
bool report_takes(enum report_format format, unsigned events, char *why, size_t why_size);
/* Can the format show the leaf first? false: @why has a sentence. */
bool report_reverses(enum report_format format, char *why, size_t why_size);
/* Writes malloc'ed bytes, NUL-terminated if they are text. 0 or -errno; -EINVAL: a pattern is
 * invalid; -ETIME: matching takes too long. */
int report_write(const struct profile *p, enum report_format format,
		 const struct report_options *options, char **ret, size_t *ret_len);
/* Numbers of samples, of the events that the options select. */
struct report_counts {
	uint64_t samples; /* in the report */
	uint64_t dropped; /* lost */
	uint64_t filtered; /* left out by a thread's name or a pattern */
	uint64_t idle; /* left out because they are waits for work */
};
void report_count(const struct profile *p, const struct report_options *options,
		  struct report_counts *ret);
/* Only the first of these numbers. */
uint64_t report_samples(const struct profile *p, const struct report_options *options);
/* The mark that other tools give a frame for how it ran: "_[0]" interpreted, "_[1]" C1, "_[j]"
 * C2, "_[i]" inlined, "_[k]" kernel; "" for others. */
const char *report_kind_mark(unsigned kind);
/* Writes a frame's name as all formats have it: "java.lang.String.indexOf", "[libjvm.so]
 * Parker::park(bool, long)", "[unknown]". Cut to @size, NUL-terminated; returns its length. */
size_t report_frame_name(const struct profile *p, const struct profile_frame *f, char *buf,
			 size_t size);
