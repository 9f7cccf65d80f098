/*
 * The SkyWalking sink: skywalking.c (registers JVMs, keeps them alive, asks for their tasks),
 * skywalking_run.c (one task of one JVM, from its start until its profile is in the spool or an
 * error is reported to the OAP, SkyWalking's server), skywalking_send.c (from the spool to the
 * OAP).
 */
#pragma once

#include "daemon/upload/grpc.h"
#include "daemon/upload/sink.h"
#include "daemon/upload/skywalking_saved.h"
#include "daemon/upload/skywalking_words.h"

struct skywalking_run;
struct upload_recorded;

/* A JVM, which the OAP calls an instance. */
struct skywalking_jvm {
	struct skywalking_jvm *next;
	struct skywalking *of;
	uint32_t pid, ns_pid;
	uint64_t start_time;
	char *name, *jdk;
	struct skywalking_instance id;
	bool is_there; /* the last look at the history found it */
	unsigned pings; /* answered ones */
	uint64_t ping_mono_ns, poll_mono_ns; /* when the next ones are due */
	int64_t last_created_ms; /* of the newest task that came */
	struct grpc_call *ping, *poll;
};

struct skywalking {
	struct sink *sink;
	struct multi *multi;
	struct skywalking_jvm *jvms;
	unsigned n_jvms, n_calls;
	struct skywalking_run *runs; /* running tasks, and for a while ended ones */
	unsigned n_runs;
	size_t content_max; /* bytes of a JFR that the OAP accepts, as far as its answers show */
	uint64_t look_mono_ns; /* the next look at the history */
	uint64_t try_mono_ns; /* the OAP did not answer: nothing is asked before this moment */
	uint64_t no_tasks_mono_ns; /* until then the OAP is taken for one that knows no tasks */
	unsigned failures; /* since the last success */
	struct grpc_server server;
	char headers[GRPC_HEADERS_MAX][512];
	char authentication[4200];
	struct grpc_call *test;
};

/* Sets the error in status and logs it if it is new; "" = there is none any more. */
void skywalking_say(struct skywalking *w, const char *text);

/* skywalking_run.c. Begins a copy of the task @t, unless it is known already. A task that cannot
 * be begun is reported to the OAP as failed. */
void skywalking_run_new(struct skywalking_jvm *j, const struct skywalking_task *t);
void skywalking_runs_tick(struct skywalking *w);
void skywalking_runs_recorded(struct skywalking *w, const struct upload_recorded *a, int fd);
/* Reports to the OAP that the profile of the task @key will not come, and why. Does nothing if
 * there is no such task. */
void skywalking_run_failed(struct skywalking *w, uint64_t key, const char *why);
/* Goes on with the tasks that an earlier process left on disk. */
void skywalking_runs_load(struct skywalking *w);
void skywalking_runs_free(struct skywalking *w);

/* skywalking_send.c: see struct sink_type. A body is an encoded profile; skywalking_spool_key()
 * makes its key. */
int skywalking_send(struct sink *s, struct sink_file *f);
void skywalking_cancel(struct sink *s, struct sink_file *f);
void skywalking_spool_key(const struct skywalking_saved *saved, char *buf, size_t size);
