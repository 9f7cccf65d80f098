/*
 * The daemon's settings: built-in defaults, overridden by one YAML file. deploy/kindlingd.yaml
 * describes every field, and a test compares it with the table in config_fields.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/core/labels.h"
#include "daemon/core/config_sinks.h"
#include "proto/idle.h"

#define RULES_MAX	  64
#define CONFIG_LABELS_MAX 16
#define LABEL_RULES_MAX	  32
#define LABEL_WHERE_MAX	  4
#define CONFIG_VALUE_MAX  (IDLE_ADDED_MAX + 2) /* of the longest, in quotes, with the NUL */

/*
 * One entry of targets.rules: all of its conditions must hold, and the first entry that holds
 * decides. A text that contains one of *?[ is a pattern that must match the whole value,
 * fnmatch(3). Any other text must equal the value; in a command line it need only occur.
 */
struct config_rule {
	bool allow, has_uid;
	unsigned line; /* in the file */
	uint32_t uid_min, uid_max;
	char container[128]; /* name, or id (12 digits or more); "" = not given, here and below */
	char pod[256]; /* "namespace/pod", or the pod alone */
	char namespace[128];
	char image[256];
	char annotation[256]; /* "NAME=value", of the pod or container; labels too */
	char command[256]; /* the command line, words joined by one space */
	char environment[256]; /* "NAME=value" */
};

struct config_label {
	char key[LABEL_KEY_SIZE];
	char value[LABEL_VALUE_SIZE];
};

/* One entry of labels.rules: changes a label of the JVMs whose labels match @where. */
struct config_label_rule {
	enum label_change { LABEL_SET, LABEL_RENAME, LABEL_REPLACE, LABEL_DROP } what;
	char label[LABEL_KEY_SIZE]; /* LABEL_DROP: may be a pattern */
	char to[LABEL_VALUE_SIZE]; /* the value, the new name, or the replacement with \1 ... */
	char regex[128];
	unsigned n_where;
	struct config_label where[LABEL_WHERE_MAX]; /* values are texts or patterns, as above */
};

struct config {
	char user[64]; /* kindling: the account of the data process */
	char socket[104]; /* /run/kindling/kindling.sock; the lock is in the same directory */
	char state_dir[256]; /* /var/lib/kindling: segments/ and symbols/ */
	char agent[256]; /* libkindling.so; default: ../lib beside the program */
	char injector[256]; /* kindling-inject; default: beside the program, or ../bin */
	int log_level; /* enum log_level */
	/* events to collect, bits 1 << enum wire_event: those that the key `events` names; without
	 * the key cpu, lock and, where the host can measure it, offcpu */
	unsigned events;
	uint64_t cpu_interval_ns; /* events.cpu.interval: 10ms */
	bool cpu_interval_given; /* not a field: the file sets it, so it is not raised */
	unsigned max_cpu_permille; /* events.cpu.max_cpu: 1% of the target's own CPU time = 10 */
	bool kernel_stacks; /* events.cpu.kernel: with the host engine */
	bool host_engine; /* events.cpu.host_engine: clocks on every CPU and BPF, not timers */
	uint64_t offcpu_min_ns; /* events.offcpu.min: 1ms; shorter times are only added up */
	bool offcpu_syscall_exits; /* events.offcpu.syscall_exits: see offcpu_engine_new() */
	bool offcpu_virtual; /* events.offcpu.virtual: waits of virtual threads without a carrier */
	uint64_t lock_min_ns; /* events.lock.min_wait: 1ms; shorter waits are only counted */
	unsigned monitors; /* events.lock.monitors: enum wire_monitors */
	uint64_t alloc_interval; /* events.alloc.interval: 512KiB */
	uint64_t wall_interval_ns; /* events.wall.interval: 50ms */
	char wall_threads[128]; /* events.wall.threads: part of the threads' names; "" = all */
	bool trace_otel, trace_skywalking,
		trace_brave; /* trace.otel ...: tracers whose ids are read */
	bool trace_published; /* trace.published: ids that threads publish for profilers */
	bool trace_keep; /* trace.keep: history, files and uploads keep the trace ids */
	char trace_mdc[128]; /* trace.mdc: keys of logging frameworks, separated by commas */
	char idle[IDLE_ADDED_MAX]; /* for idle_add() */
	bool quiet_attach; /* keep the JVM's own attach warning out of the application's output */
	enum { BPF_AUTO, BPF_ON, BPF_OFF } bpf; /* discovery.bpf */
	uint64_t scan_interval_ns; /* discovery.scan_interval: 30s (1s without BPF events) */
	char names_cri[104]; /* names.cri: the path of the runtime's socket; "" = off */
	uint64_t attach_deadline_ns; /* attach.deadline: 10s */
	bool tmpfs_over_tmp; /* attach.tmpfs_over_tmp: mount one where a JVM cannot write to /tmp */
	bool yields; /* targets.foreign_profilers: no agent in a JVM with another profiler */
	bool opt_in; /* targets.mode: only JVMs that a rule allows */
	uint64_t attach_rate; /* targets.attach_rate: attaches a second, 5; 0 = no limit */
	uint64_t targets_max; /* targets.max: 200; 0 = no limit */
	uint64_t crash_block_ns; /* targets.crash_block: 24h; 0 = never */
	char file[256]; /* the file that the rules are from, "" = none */
	unsigned n_rules;
	struct config_rule rules[RULES_MAX]; /* targets.rules */
	unsigned n_sinks;
	struct config_sink sinks[SINKS_MAX]; /* sinks */
	uint64_t retention_ns; /* store.retention: 24h */
	uint64_t store_max_bytes; /* store.max_size: 1GiB */
	uint64_t memory_bytes; /* limits.memory: 192MiB */
	unsigned decode_cpu_permille; /* limits.decode_cpu: 10% of a CPU; 0 = no limit */
	uint64_t symbols_max_bytes; /* symbols.max_size: 256MiB */
	uint64_t ring_bytes; /* agent.ring_size: memory of the agent's ring, 512KiB */
	uint64_t pipe_bytes; /* agent.pipe_size: 1MiB */
	/* not fields: this host's name, and the cluster's name for it (NODE_NAME in the daemon's
	 * environment, else the host's name) */
	char host[64];
	char node[128];
	bool label_threads; /* labels.threads: uploads have the names of threads */
	/* labels.pods: names or patterns of pod labels and annotations that become labels,
	 * separated by commas */
	char label_pods[256];
	bool label_cloud; /* labels.cloud: uploads have labels of the cloud that this host is in */
	unsigned n_labels, n_label_rules;
	struct config_label labels[CONFIG_LABELS_MAX]; /* labels.set */
	struct config_label_rule label_rules[LABEL_RULES_MAX]; /* labels.rules */
	bool attach_all; /* not a field: `record` without a daemon attaches only to its target */
};

/*
 * Fills in the built-in defaults; paths are relative to the running program. KINDLING_SOCKET in the
 * environment, which clients use too, becomes the default of `socket` if it is set.
 */
void config_defaults(struct config *c);
/*
 * Reads the file @path and overwrites the fields of @c that it sets. Returns 0, or -errno with a
 * text "file:line: field: sentence" in @err (NUL-terminated, cut to @err_size); then @c may be
 * partly changed.
 */
int config_load(struct config *c, const char *path, char *err, size_t err_size);
/* The same for a file that is open as @fd, borrowed; or @fd is the -errno of opening it. */
int config_load_fd(struct config *c, const char *path, int fd, char *err, size_t err_size);
/* The same for @len bytes of text that came from @name. Fuzzed by tests/fuzz/fuzz_config.c. */
int config_parse(struct config *c, const char *name, const char *text, size_t len, char *err,
		 size_t err_size);
/* Checks that files without which nothing works exist (agent, injector ...), also those named by
 * defaults. Those that @known names as well are not checked again; it may be NULL. 0, or -EINVAL
 * with "agent.library: /x cannot be read: ..." in @why. */
int config_check_files(const struct config *c, const struct config *known, char *why,
		       size_t why_size);
/* The name ("events.cpu.interval") of field @index, and a sentence about it; NULL past the last. */
const char *config_field(size_t index, const char **ret_sentence);
/* Writes the value of field @index as it would be in the file, for which CONFIG_VALUE_MAX bytes
 * suffice. Returns @buf, like those below. */
const char *config_value(const struct config *c, size_t index, char *buf, size_t size);
/* Rule @index of targets.rules likewise: `deny: { command: "*kafka*", uid: 1000-1999 }`. */
const char *config_rule(const struct config *c, unsigned index, char *buf, size_t size);
/* Label @index of labels.set, and rule @index of labels.rules. */
const char *config_label(const struct config *c, unsigned index, char *buf, size_t size);
const char *config_label_rule(const struct config *c, unsigned index, char *buf, size_t size);
/* Do the settings ask for times off the CPU more than the defaults do, which have them only where
 * the host can measure them? Naming the defaults themselves, as the installed file does, asks for
 * nothing more. */
bool config_asks_for_offcpu(const struct config *c);
/* The events to collect as a list, "cpu, lock". */
const char *config_events(const struct config *c, char *buf, size_t size);
