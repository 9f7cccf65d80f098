/* Shared by jfr.c (bytes, events, the chunk), jfr_pools.c (constants that events refer to) and
 * jfr_types.c (metadata). */
#pragma once

#include "daemon/report/formats.h"

/* ticks are ns; the start is not 0, which some readers take for "none" */
#define JFR_START_TICKS 1000000000ull

enum jfr_type {
	JFR_METADATA = 0,
	JFR_POOLS = 1,
	JFR_BOOLEAN = 10,
	JFR_CHAR,
	JFR_FLOAT,
	JFR_DOUBLE,
	JFR_BYTE,
	JFR_SHORT,
	JFR_INT,
	JFR_LONG,
	JFR_STRING = 20,
	JFR_CLASS,
	JFR_THREAD,
	JFR_CLASS_LOADER,
	JFR_FRAME_TYPE,
	JFR_THREAD_STATE,
	JFR_STACK_TRACE,
	JFR_STACK_FRAME,
	JFR_METHOD,
	JFR_PACKAGE,
	JFR_SYMBOL,
	JFR_LABEL = 40,
	JFR_CATEGORY,
	JFR_TIMESTAMP,
	JFR_TIMESPAN,
	JFR_EXECUTION_SAMPLE = 101,
	JFR_ACTIVE_SETTING,
	JFR_MONITOR_ENTER,
	JFR_MONITOR_WAIT,
	JFR_THREAD_PARK,
	JFR_ALLOCATION,
	JFR_CPU_TIME = 110,
	JFR_ACCOUNTS,
	JFR_WAIT_TIME,
	JFR_ALLOCATED,
	JFR_EVENT_ACCOUNTS,
	JFR_OFFCPU,
	JFR_OFFCPU_TIME,
};

/* Writes seven bits in each byte; at most nine bytes, of which the ninth has eight bits. */
void jfr_u64(struct text_out *t, uint64_t v);
void jfr_string(struct text_out *t, const char *s);
/* A chunk consists of events. jfr_begin() leaves room for the event's size, which jfr_end()
 * fills in. */
size_t jfr_begin(struct text_out *t, enum jfr_type type);
void jfr_end(struct text_out *t, size_t at);
/* The metadata event: all types and their fields. */
void jfr_put_types(struct text_out *t, uint64_t start_ticks);

struct jfr {
	struct text_out *t;
	const struct profile *p;
	uint32_t *order; /* numbers of frames, sorted by method */
	uint32_t *method; /* by frame: the first frame of its method */
	uint8_t *string_used, *class_used; /* by string */
	uint8_t *leaf_used; /* by node */
	unsigned events; /* bits */
	uint64_t carried_ns; /* CPU time for which no jdk.ExecutionSample was written yet */
	uint64_t n; /* events written with moments */
};

/* Computes the fields above from frames and rows; the arrays are allocated and zeroed. */
void jfr_number(struct jfr *j);
/* The key of a row's stack without the class on top, and that class's key; 0 = none. */
uint32_t jfr_stack_of(const struct jfr *j, const struct profile_row *r);
uint64_t jfr_class_of(const struct jfr *j, const struct profile_row *r);
/* Writes the pools. The key of a thread is its number + 1, that of a stack its leaf + 1. */
void jfr_put_pools(struct jfr *j);
