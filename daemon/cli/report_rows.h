/* The options that `kindling report` has for the history of one host and for that of a cluster
 * (source.c). */
#pragma once

#include "daemon/cli/changes.h"

/* @type_ must have members of these names: const char *last, from, to, output, format, type,
 * thread, include and exclude; struct changes changes; bool merge, idle, threads, reverse and
 * annotate. */
#define OPTIONS_OF_REPORT(type_)                                                                   \
	OPTION_FLAG('m', "merge", type_, merge,                                                    \
		    "merge JVMs: each method is one box, whichever JVM ran it"),                   \
		OPTION_TEXT('l', "last", "DURATION", type_, last,                                  \
			    "how far to look back: 30s, 2m30s, 1.5h (default 60s)"),               \
		OPTION_TEXT(0, "from", "TIME", type_, from,                                        \
			    "14:05, 14:05:30, \"2026-11-21 14:05\" or @SECONDS since 1970; a "     \
			    "time of day later than now means yesterday's"),                       \
		OPTION_TEXT(0, "to", "TIME", type_, to, "in the same forms (default: now)"),       \
		OPTION_TEXT('o', "output", "FILE", type_, output,                                  \
			    "format by suffix: .html (flame graph), .collapsed, .txt, .pb.gz "     \
			    "(pprof), .json, .jfr (JDK Mission Control), .speedscope.json, .otlp " \
			    "(the request of OTLP profiles, opentelemetry-proto 1.11) or "         \
			    ".otlp.json; \"-\" is stdout"),                                        \
		OPTION_CHOICE('f', "format", "FORMAT", CLI_FORMATS, type_, format,                 \
			      "html, collapsed, txt, pb.gz, json, jfr, speedscope, otlp or "       \
			      "otlp.json, whatever FILE is called"),                               \
		OPTION_CHOICE(                                                                     \
			'e', "event", "EVENT,...", "cpu lock alloc wall offcpu", type_, type,      \
			"cpu (the default), lock (time that threads waited), alloc (bytes "        \
			"allocated), wall (time, running or not), offcpu (time that threads "      \
			"did not run, with the reason), if it is collected; "                      \
			"pb.gz, jfr, speedscope and otlp files can hold several: cpu,lock"),       \
		OPTION_HIDDEN("type", type_, type),                                                \
		OPTION_FLAG(0, "idle", type_, idle,                                                \
			    "also waits for work (pool threads at empty queues, timers, "          \
			    "selectors)"),                                                         \
		OPTION_TEXT('t', "thread", "WORD", type_, thread,                                  \
			    "only threads whose name contains WORD"),                              \
		OPTION_FLAG(0, "threads", type_, threads,                                          \
			    "keep threads apart: the flame graph has a tower for each"),           \
		OPTION_TEXT(0, "include", "REGEX", type_, include,                                 \
			    "only stacks with a frame that matches, as in "                        \
			    "'OrderService|^java.util.zip'; a POSIX extended regular "             \
			    "expression"),                                                         \
		OPTION_TEXT(0, "exclude", "REGEX", type_, exclude,                                 \
			    "no stacks with a frame that matches; how much was left out is in "    \
			    "the file"),                                                           \
		OPTIONS_OF_CHANGES(type_, changes),                                                \
		OPTION_FLAG(0, "reverse", type_, reverse,                                          \
			    "leaf first: the callers of a method are below it; .html, "            \
			    ".collapsed, .json"),                                                  \
		OPTION_FLAG(0, "annotate", type_, annotate,                                        \
			    ".collapsed, .pb.gz: names end with how the frame ran, _[0] "          \
			    "interpreted, _[1] C1, _[j] C2, _[i] inlined, _[k] kernel")
