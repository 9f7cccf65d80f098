/* The formats behind report_write(), each in a file of its own. They get a profile that has only
 * what the options select. */
#pragma once

#include "daemon/report/event_names.h"
#include "daemon/report/report.h"
#include "daemon/report/text_out.h"
#include "daemon/report/view.h"

void write_collapsed(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_txt(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_json(struct text_out *t, const struct profile *p, const struct report_options *o);
/* Writes everything but the tables of threads, frames, nodes and rows. */
void write_json_head(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_html(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_speedscope(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_jfr(struct text_out *t, const struct profile *p, const struct report_options *o);
/* @json: writes JSON, not protobuf. */
int write_otlp(const struct profile *p, bool json, char **ret, size_t *ret_len);
int write_pprof(const struct profile *p, const struct report_options *o, char **ret,
		size_t *ret_len);

/* Makes a profile of what the options select of @p, which the caller frees; *ret is NULL if they
 * select everything. Errors as for report_write(). */
int report_part(const struct profile *p, const struct report_options *o, struct profile **ret);

#define THREAD_NUMBER_MAX 24
/* What follows a thread's name: " tid=4711", " virtual #53", or "" for the number that unnamed
 * virtual threads share. */
const char *thread_number(const struct profile_thread *t, char buf[THREAD_NUMBER_MAX]);
/* Are JVMs shown separately? Yes if there are several and the options do not merge them. */
bool report_is_of_several(const struct profile *p, const struct report_options *o);
/* Writes "4711 org.shop.Main (shop/cart)", several of these, or the title in the options. */
bool report_is_of_nothing(const struct profile *p); /* of no JVM, and of no time */
void report_title(const struct profile *p, const struct report_options *o, char *buf, size_t size);
