/*
 * The daemon's settings: embedded defaults, overridden by one YAML file. Every field is described
 * in deploy/kindlingd.yaml, which a test holds against this struct's table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config {
	char socket[104]; /* /run/kindling/kindling.sock; its directory holds the lock too */
	char state_dir[256]; /* /var/lib/kindling: segments/ and symbols/ */
	char agent[256]; /* libkindling.so; default: ../lib beside the program */
	char injector[256]; /* kindling-inject; default: beside the program, or ../bin */
	int log_level; /* enum log_level */
	uint64_t cpu_interval_ns; /* events.cpu.interval: 10ms */
	unsigned max_cpu_permille; /* events.cpu.max_cpu: 1% of the target's own CPU time = 10 */
	bool host_engine; /* events.cpu.host_engine: BPF for intervals below the kernel's tick */
	bool quiet_attach; /* keep the JVM's own attach warning out of the application's output */
	enum { BPF_AUTO, BPF_ON, BPF_OFF } bpf; /* discovery.bpf */
	uint64_t scan_interval_ns; /* discovery.scan_interval: 30s (1s without BPF events) */
	uint64_t attach_deadline_ns; /* attach.deadline: 10s */
	uint64_t retention_ns; /* store.retention: 24h */
	uint64_t store_max_bytes; /* store.max_size: 1GiB */
	uint64_t ring_bytes; /* agent.ring_size: memory of the agent's ring, 512KiB */
	uint64_t pipe_bytes; /* agent.pipe_size: 1MiB */
	bool attach_all; /* not a field: record without a daemon attaches only what it was told */
};

/*
 * Fill in the embedded defaults; paths relative to the running program. The environment's
 * KINDLING_SOCKET, which clients know too, is the default of `socket` where it is set.
 */
void config_defaults(struct config *c);
/*
 * Read @path over @c. Returns 0, or -errno with a text "file:line: field: sentence" in @err
 * (NUL-terminated, cut to @err_size). @c may be partly changed then.
 */
int config_load(struct config *c, const char *path, char *err, size_t err_size);
/* The same for @len bytes of text that came from @name. Fuzzed by tests/fuzz/fuzz_config.c. */
int config_parse(struct config *c, const char *name, const char *text, size_t len, char *err,
		 size_t err_size);
/* The name ("events.cpu.interval") of field @index and what it is for; NULL past the last. */
const char *config_field(size_t index, const char **ret_sentence);
