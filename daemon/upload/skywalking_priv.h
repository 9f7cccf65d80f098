/*
 * The SkyWalking sink: skywalking.c (registers JVMs, keeps them alive, asks for their tasks),
 * skywalking_run.c (one task of one JVM, from its start to its profile in the spool, or to an error
 * reported to the OAP), skywalking_send.c (from the spool to the OAP).
 */
#pragma once

#include "daemon/upload/grpc.h"
#include "daemon/upload/sink.h"
#include "daemon/upload/skywalking_saved.h"
#include "daemon/upload/skywalking_words.h"

struct skywalking_run;
struct upload_recorded;

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
};

struct skywalking {
	struct sink *sink;
	struct multi *multi;
	struct skywalking_jvm *jvms;
	unsigned n_jvms, n_calls;
	struct skywalking_run *runs; /* tasks; those that are over for a while too */
	unsigned n_runs;
	size_t content_max; /* bytes that the OAP takes, as far as it has said */
	uint64_t look_mono_ns; /* the next look at the history */
	uint64_t try_mono_ns; /* nothing is asked before: the OAP did not answer */
	uint64_t no_tasks_mono_ns; /* until then the OAP is one without tasks */
	unsigned failures; /* one after the other */
	struct grpc_server server;
	char headers[GRPC_HEADERS_MAX][512];
	char authentication[4200];
	struct grpc_call *test;
};

/* Sets the error, for status and, when it is new, for the log; "" = no error. */
void skywalking_say(struct skywalking *w, const char *text);

/* skywalking_run.c. @t is copied; one that is known is left alone. One that cannot be begun is
 * reported as failed. */
void skywalking_run_new(struct skywalking_jvm *j, const struct skywalking_task *t);
void skywalking_runs_tick(struct skywalking *w);
void skywalking_runs_recorded(struct skywalking *w, const struct upload_recorded *a, int fd);
/* Reports an error to the OAP, if there was a task of this key: its profile will not come. */
void skywalking_run_failed(struct skywalking *w, uint64_t key, const char *why);
/* Those of an earlier life go on. */
void skywalking_runs_load(struct skywalking *w);
void skywalking_runs_free(struct skywalking *w);

/* skywalking_send.c: as of struct sink_type. The body is an encoded profile, the key of its file
 * what skywalking_spool_key() makes. */
int skywalking_send(struct sink *s, struct sink_file *f);
void skywalking_cancel(struct sink *s, struct sink_file *f);
void skywalking_spool_key(const struct skywalking_saved *saved, char *buf, size_t size);
