/*
 * kindling-upload: the program that delivers. It reads the history, makes bodies of it in the spool
 * of each sink, and sends them. Started by the warden for kindlingd-data, with which it speaks over
 * one socket, upload_message.h; ends when that is closed.
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
	struct cloud *cloud; /* NULL = nobody is asked */
	struct aws_asker *aws; /* NULL = no sink needs it */
	struct sink *sinks[SINKS_MAX];
	unsigned n_sinks;
	int fd; /* to kindlingd-data */
	/* where the answer of a sink goes that was asked for; @ok: it took the test */
	void (*on_test)(struct upload *u, const struct sink *s, bool ok, const char *why);
	uint64_t settled_real_ns; /* the history is whole up to here */
};
