/*
 * kindling-upload, the program that delivers: it reads the history, makes bodies of it in each
 * sink's spool, and sends them. The warden starts it for kindlingd-data and connects the two by one
 * socket (upload_message.h). kindling-upload ends when that is closed.
 */
#pragma once

#include "daemon/core/config.h"
#include "daemon/core/loop.h"
#include "daemon/upload/sink.h"
#include "daemon/upload/source.h"

struct aws_asker;
struct cloud;

/* The profile that take.c made last: sinks with the same settings need the same one, and take their
 * intervals at the same pace. */
struct upload_shared {
	uint64_t begin_ns, end_ns;
	struct source_process who;
	unsigned events; /* as in struct sink */
	bool threads;
	struct profile *profile; /* NULL = none */
};

struct upload {
	struct loop *loop;
	const struct config *config;
	struct source *source;
	struct multi *multi;
	struct cloud *cloud; /* NULL = labels.cloud is not set */
	struct aws_asker *aws; /* NULL = no sink needs it */
	struct sink *sinks[SINKS_MAX];
	unsigned n_sinks;
	struct upload_shared shared;
	int fd; /* the socket to kindlingd-data */
	/* gets the result of a sink's test; @ok: it succeeded */
	void (*on_test)(struct upload *u, const struct sink *s, bool ok, const char *why);
	uint64_t settled_real_ns; /* the history is complete up to here */
};
