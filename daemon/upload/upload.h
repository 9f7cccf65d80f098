/*
 * kindling-upload: the program that delivers. It reads the history, makes bodies of it in the spool
 * of each sink, and sends them. The warden starts it for kindlingd-data, with which it talks over
 * one socket, upload_message.h; it ends when that is closed.
 */
#pragma once

#include "daemon/core/config.h"
#include "daemon/core/loop.h"
#include "daemon/upload/sink.h"
#include "daemon/upload/source.h"

struct aws_asker;
struct cloud;

struct upload {
	struct loop *loop;
	const struct config *config;
	struct source *source;
	struct multi *multi;
	struct cloud *cloud; /* NULL = the cloud is not queried */
	struct aws_asker *aws; /* NULL = no sink needs it */
	struct sink *sinks[SINKS_MAX];
	unsigned n_sinks;
	int fd; /* to kindlingd-data */
	/* receives the result of a sink's test; @ok: it succeeded */
	void (*on_test)(struct upload *u, const struct sink *s, bool ok, const char *why);
	uint64_t settled_real_ns; /* the history is complete up to here */
};
