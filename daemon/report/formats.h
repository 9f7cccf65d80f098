/* The writers behind report_write(), one a file. Each gets a profile with nothing but what the
 * options ask for. */
#pragma once

#include "daemon/report/events.h"
#include "daemon/report/report.h"
#include "daemon/report/text_out.h"
#include "daemon/report/view.h"

void write_collapsed(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_txt(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_json(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_html(struct text_out *t, const struct profile *p, const struct report_options *o);
void write_jfr(struct text_out *t, const struct profile *p, const struct report_options *o);
int write_pprof(const struct profile *p, const struct report_options *o, char **ret,
		size_t *ret_len);

#define THREAD_NUMBER_MAX 24
/* What is behind a thread's name: " tid=4711", " virtual #53"; "" of all that have no name. */
const char *thread_number(const struct profile_thread *t, char buf[THREAD_NUMBER_MAX]);
/* "4711 org.shop.Main (shop/cart)", several joined, or what the options say. */
void report_title(const struct profile *p, const struct report_options *o, char *buf, size_t size);
