/* The writers behind report_write(), one in each file. Each gets a profile that contains only what
 * the options select. */
#pragma once

#include "daemon/report/events.h"
#include "daemon/report/report.h"
#include "daemon/report/text_out.h"
#include "daemon/report/view.h"

void write_collapsed(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_txt(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_json(struct text_out *t, const struct profile *p, const struct report_options *o);
/* The profile without its tables of threads, frames, nodes and rows. */
void write_json_head(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_html(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_speedscope(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_jfr(struct text_out *t, const struct profile *p, const struct report_options *o);
/* @json: its JSON instead of protobuf */
int write_otlp(const struct profile *p, bool json, char **ret, size_t *ret_len);
int write_pprof(const struct profile *p, const struct report_options *o, char **ret,
		size_t *ret_len);

/* The part of @p that the options select, the caller's; NULL if that is all of it. Errors as for
 * report_write(). */
int report_part(const struct profile *p, const struct report_options *o, struct profile **ret);

#define THREAD_NUMBER_MAX 24
/* The suffix of a thread's name: " tid=4711", " virtual #53"; "" for the number shared by unnamed
 * virtual threads. */
const char *thread_number(const struct profile_thread *t, char buf[THREAD_NUMBER_MAX]);
/* Are JVMs to be shown separately: are there several, and are they not to be merged? */
bool report_is_of_several(const struct profile *p, const struct report_options *o);
/* "4711 org.shop.Main (shop/cart)", several joined, or the title of the options. */
void report_title(const struct profile *p, const struct report_options *o, char *buf, size_t size);
