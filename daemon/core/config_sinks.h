/*
 * The setting `sinks`: where profiles are delivered. The table in config_sinks.c has a row for
 * every key, with the types of sinks that it applies to; with other types it is refused. The
 * settings contain no secrets, but name the files or environment variables that do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SINKS_MAX	   16
#define SINK_PAIRS_MAX	   8
#define SINK_COMMAND_BYTES 1024

/* X(ENUM, "name") */
#define SINK_TYPES(X)               \
	X(FILES, "files")           \
	X(EXEC, "exec")             \
	X(S3, "s3")                 \
	X(PYROSCOPE, "pyroscope")   \
	X(OTLP, "otlp")             \
	X(CLICKHOUSE, "clickhouse") \
	X(SKYWALKING, "skywalking")

enum sink_type_id {
#define X(id, name) SINK_##id,
	SINK_TYPES(X)
#undef X
		SINK_TYPE_COUNT
};
extern const char *const sink_type_names[SINK_TYPE_COUNT];

struct config_pair {
	char name[64], value[256];
};

struct config_sink {
	char name[48]; /* letters, digits, - and _: it names a directory of the spool */
	int type; /* enum sink_type_id */
	unsigned line; /* in the file */
	char events[64]; /* "cpu,lock"; "" = all that are collected */
	uint64_t interval_ns, timeout_ns;
	uint64_t spool_bytes, spool_age_ns;
	uint64_t keep_bytes; /* files: of the directory */
	char url[512], proxy[256];
	char format[16], protocol[8];
	char directory[256];
	char bucket[64], region[32], prefix[256];
	char database[64];
	char instance[128]; /* skywalking: pattern of instance names; "" = a default */
	char user[128];
	/* paths, or names of variables of the environment */
	char password_file[256], password_env[64];
	char bearer_file[256], bearer_env[64];
	char access_key_file[256], access_key_env[64];
	char secret_key_file[256], secret_key_env[64];
	char session_token_file[256], session_token_env[64];
	char ca_file[256], cert_file[256], key_file[256]; /* PEM */
	bool threads; /* profiles contain the names of threads */
	bool create; /* clickhouse: create the tables */
	unsigned n_headers, n_targets, n_words;
	struct config_pair headers[SINK_PAIRS_MAX];
	struct config_pair targets[SINK_PAIRS_MAX]; /* only JVMs for which all of these hold */
	char command[SINK_COMMAND_BYTES]; /* exec: n_words, each with its NUL */
};

/* Writes the sink as the file of settings would have it, in one line and without secrets.
 * Returns @buf. */
const char *config_sink_text(const struct config_sink *s, char *buf, size_t size);
