/*
 * The parts of agent_reader: reader_session.c opens the pipes, reader_frames.c and reader_events.c
 * decode and count the frames, and reader_report.c prints the results.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/bpf/host_engine.h"
#include "proto/wire.h"

#define IDS_MAX	    (1u << 18)
#define THREADS_MAX (1u << 16)
#define NS_PER_S    1000000000ull
#define ANSWER_S    60 /* time after which a missing answer of the agent counts as none */

struct reader_options {
	int pid;
	const char *library;
	double seconds;
	uint64_t interval_ns, ring_bytes, permille;
	int pipe_bytes, sleep_ms, cycles;
	bool threads, no_traces, no_budget, stop, leave, verbose, details, host, lines, kinds;
	uint64_t events, lock_min_ns, monitors, alloc_interval, wall_interval_ns, virtual_min_ns;
	const char *wall_threads;
};

struct thread {
	uint32_t tid;
	char *name;
	uint64_t weight_ns;
	bool ended;
};

struct reader_in {
	char *strings[IDS_MAX];
	struct wire_method methods[IDS_MAX];
	struct wire_mapping mappings[IDS_MAX];
	struct wire_node nodes[IDS_MAX];
	uint64_t self_ns[IDS_MAX];
	struct thread threads[THREADS_MAX];
	char contexts[WIRE_CONTEXT_MAX]
		     [2 * WIRE_TRACE_MAX + 2]; /* "trace/span"; "" = not defined */
	uint64_t samples, weight_ns, bytes, sequence, booked_ns, broken;
	struct {
		uint64_t n, weight;
	} events[WIRE_EVENT_COUNT];
	uint64_t opened, closed;
	struct wire_ledger ledger;
	uint64_t ledgers, resets, ended;
	bool hello, bye, failed;
	char secret[WIRE_SECRET_BYTES]; /* the options with which the agent was loaded */
	double first_sample_s;
};

extern struct reader_options opt;
extern struct reader_in in;
extern struct host_engine *host; /* with -H */

/* reader_frames.c */
double now_s(void);
__attribute__((format(printf, 1, 2))) void wrong(const char *fmt, ...);
double process_cpu_s(void);
const char *text(uint32_t id);
void print_frame(const struct wire_node *n);
struct thread *thread(uint32_t tid);
void on_frame(const struct wire_frame *f);

/* reader_events.c */
void on_lock(const struct wire_lock *l);
void on_state(const struct wire_state *s);
void on_virtual(const struct wire_virtual *v);
void on_alloc(const struct wire_alloc *a);
void on_wall(const struct wire_sample *s);
void on_offcpu(const struct wire_offcpu *o);
void on_pause(const struct wire_pause *p);
void on_sample(const struct wire_sample *s);

/* reader_session.c */
void read_frames(int fd);
void command(int fd, enum wire_type type, uint64_t session);
int load(uint64_t session, int *ret_events, int *ret_control);
int come_back(uint64_t session, int *ret_events, int *ret_control);

/* reader_report.c */
void print_parts(const char *when, const struct wire_ledger *l);
void report(double cpu_s, double seconds);
