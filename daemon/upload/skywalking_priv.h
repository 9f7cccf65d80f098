/*
 * The SkyWalking sink: skywalking.c (which JVMs there are, registered and kept alive, their tasks
 * asked for), skywalking_run.c (one task of one JVM, from its begin to what the OAP says of the
 * upload).
 */
#pragma once

#include "daemon/upload/grpc.h"
#include "daemon/upload/sink.h"
#include "daemon/upload/skywalking_words.h"

struct skywalking_run;

/* A JVM, an instance to the OAP. */
struct skywalking_jvm {
	struct skywalking_jvm *next;
	struct skywalking *of;
	uint32_t pid, ns_pid;
	uint64_t start_time;
	char *name, *jdk;
	struct skywalking_instance id;
	bool is_there; /* in the last look at the history */
	unsigned pings; /* that were answered */
	uint64_t ping_mono_ns, poll_mono_ns; /* the next ones */
	int64_t last_created_ms; /* of its tasks */
	struct grpc_call *ping, *poll;
	struct skywalking_run *runs; /* its tasks */
};

struct skywalking {
	struct sink *sink;
	struct multi *multi;
	struct skywalking_jvm *jvms;
	unsigned n_jvms, n_calls;
	uint64_t look_mono_ns; /* the next look at the history */
	uint64_t try_mono_ns; /* nothing is asked before: the OAP did not answer */
	uint64_t no_tasks_mono_ns; /* until then the OAP is one without tasks */
	unsigned failures; /* one after the other */
	struct grpc_server server;
	char headers[GRPC_HEADERS_MAX][512];
	char authentication[4200];
	struct grpc_call *test;
};

/* What went wrong, in status and, when it is new, in the log; "" = all is well. */
void skywalking_say(struct skywalking *w, const char *text);
/* How far the history is whole. */
uint64_t skywalking_settled_ns(const struct skywalking *w);

/* skywalking_run.c. @t is copied. A task that cannot be begun is reported as failed. */
void skywalking_run_new(struct skywalking_jvm *j, const struct skywalking_task *t);
void skywalking_runs_tick(struct skywalking_jvm *j);
void skywalking_runs_free(struct skywalking_jvm *j);
