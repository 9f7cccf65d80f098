/*
 * A daemon's end of a session for developers: loads the agent into a JVM (or comes back to one that
 * lives there), prints what arrives, and checks the accounts against what was decoded.
 *
 *   agent_reader [options] PID
 *     -l LIB   load LIB with jattach; without it: reach the FIFOs of an agent through /proc/PID/fd
 *     -d SEC   how long (5)             -i USEC  interval (10000)
 *     -r BYTES ring                     -p BYTES pipe
 *     -w MSEC  sleep before each read: a slow reader
 *     -m PERMILLE  CPU budget; without it the budget is off
 *     -e LIST  what to collect: cpu,lock,alloc,wall (cpu)
 *     -T NSEC  shorter waits are only counted (1000000)
 *     -M auto|always|never   monitor enters and waits (auto)
 *     -A BYTES between two allocation samples   -W USEC between two wall-clock samples
 *     -N NAME  part of the names of the threads for wall-clock samples; without it all
 *     -S       what threads do, as well
 *     -L       print each wait, allocation and thread, a line each
 *     -O       no trace ids
 *     -H       signals from the host engine, if it is to be had, for an interval below the tick
 *     -s       STOP for the middle third of the time
 *     -c N     STOP and START so many times, as fast as the agent follows
 *     -k       leave without DETACH, as if killed
 *     -v       print every frame
 *     -K       and the kind of each method's, behind an @
 *     -D       details: memory by part at the first sample and at the end, times in the handler
 *
 * Exit status: 0 all accounts exact, 1 not, 2 no session.
 */
#include "tests/harness/reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct host_engine *host;
struct reader_options opt = {
	.seconds = 5,
	.interval_ns = 10000000,
	.no_budget = true,
};

static uint64_t events_of(const char *list)
{
	uint64_t bits = 0;

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (strstr(list, wire_event_names[e]))
			bits |= 1u << e;
	return bits;
}

static int parse(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "l:d:i:r:p:w:m:c:e:T:M:A:W:N:V:skvDHLSKO")) != -1) {
		switch (o) {
		case 'l':
			opt.library = optarg;
			break;
		case 'd':
			opt.seconds = atof(optarg);
			break;
		case 'i':
			opt.interval_ns = strtoull(optarg, NULL, 10) * 1000;
			break;
		case 'r':
			opt.ring_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'p':
			opt.pipe_bytes = atoi(optarg);
			break;
		case 'w':
			opt.sleep_ms = atoi(optarg);
			break;
		case 'm':
			opt.permille = strtoull(optarg, NULL, 10);
			opt.no_budget = false;
			break;
		case 's':
			opt.stop = true;
			break;
		case 'c':
			opt.cycles = atoi(optarg);
			break;
		case 'k':
			opt.leave = true;
			break;
		case 'D':
			opt.details = true;
			break;
		case 'v':
			opt.verbose = true;
			break;
		case 'e':
			opt.events = events_of(optarg);
			break;
		case 'T':
			opt.lock_min_ns = strtoull(optarg, NULL, 10);
			break;
		case 'M':
			opt.monitors = strcmp(optarg, "always") == 0  ? WIRE_MONITORS_ALWAYS
				       : strcmp(optarg, "never") == 0 ? WIRE_MONITORS_NEVER
								      : WIRE_MONITORS_AUTO;
			break;
		case 'A':
			opt.alloc_interval = strtoull(optarg, NULL, 10);
			break;
		case 'W':
			opt.wall_interval_ns = strtoull(optarg, NULL, 10) * 1000;
			break;
		case 'V':
			opt.virtual_min_ns = strtoull(optarg, NULL, 10);
			break;
		case 'N':
			opt.wall_threads = optarg;
			break;
		case 'S':
			opt.threads = true;
			break;
		case 'L':
			opt.lines = true;
			break;
		case 'K':
			opt.kinds = true;
			break;
		case 'O':
			opt.no_traces = true;
			break;
		case 'H':
			opt.host = true;
			break;
		default:
			return -1;
		}
	}
	if (optind != argc - 1)
		return -1;
	opt.pid = atoi(argv[optind]);
	return 0;
}

/* The agent answers each STOP by a LEDGER, after it has carried out the START before it. */
static void cycle(int events, int control, uint64_t session)
{
	for (int i = 0; i < opt.cycles && !in.failed; i++) {
		uint64_t before = in.ledgers;
		double end = now_s() + ANSWER_S;

		command(control, WIRE_STOP, session);
		while (in.ledgers == before && now_s() < end) {
			struct pollfd p = { .fd = events, .events = POLLIN };

			if (poll(&p, 1, 50) > 0)
				read_frames(events);
		}
		if (in.ledgers == before)
			wrong("STOP %d was not answered", i);
		command(control, WIRE_START, session);
	}
}

static volatile sig_atomic_t asked_to_end;

static void on_term(int signo)
{
	(void)signo;
	asked_to_end = 1;
}

int main(int argc, char **argv)
{
	uint64_t session = (uint64_t)time(NULL) << 16 | (uint64_t)getpid();
	double launch = now_s(), begin, cycled, cpu_begin = 0, cpu_end = 0;
	int events = -1, control = -1, phase = 0;
	char why[HOST_ENGINE_WHY_MAX];
	double asked = 0;

	if (parse(argc, argv) < 0) {
		fprintf(stderr,
			"usage: agent_reader [-l LIB] [-d SEC] [-i USEC] [-r BYTES] [-p BYTES] [-w "
			"MSEC] [-m PERMILLE] [-e LIST] [-T NSEC] [-M auto|always|never] [-A BYTES] "
			"[-W USEC] [-N NAME] [-V NSEC] [-s] [-c N] [-k] [-v] [-D] [-H] [-L] [-S] [-K] [-O] PID\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	/* written under another name first, as a test may be reading the file */
	setlinebuf(stdout);
	signal(SIGTERM, on_term); /* end as if the time were over */
	if (opt.host && host_engine_new(false, &host, why) < 0) {
		fprintf(stderr, "no host engine: %s\n", why);
		opt.host = false;
	}
	if ((opt.library ? load : come_back)(session, &events, &control) < 0) {
		fprintf(stderr, "no session: %s\n", strerror(errno));
		return 2;
	}
	cpu_begin = process_cpu_s();
	begin = now_s();
	cycle(events, control, session);
	cycled = now_s(); /* thousands of cycles take as long as the machine needs */
	while (!in.bye && now_s() < cycled + opt.seconds + ANSWER_S &&
	       !(asked && now_s() > asked + ANSWER_S)) {
		struct pollfd p = { .fd = events, .events = POLLIN };
		double passed = now_s() - begin;

		if (opt.stop && phase == 0 && passed > opt.seconds / 3) {
			command(control, WIRE_STOP, session);
			phase = 1;
		} else if (opt.stop && phase == 1 && passed > opt.seconds * 2 / 3) {
			command(control, WIRE_START, session);
			phase = 2;
		}
		if (!asked && (passed > opt.seconds || asked_to_end)) {
			if (opt.leave)
				break;
			cpu_end = process_cpu_s();
			command(control, WIRE_DETACH, session);
			asked = now_s();
		}
		if (poll(&p, 1, 50) > 0)
			read_frames(events);
		fflush(stdout); /* the process that reads our output may be waiting for this line */
	}
	if (opt.leave)
		cpu_end = process_cpu_s();
	if (!in.hello || (!in.bye && !opt.leave))
		wrong("no %s", in.hello ? "BYE" : "HELLO");
	printf("first sample after %.1f ms\n", (in.first_sample_s - launch) * 1000);
	report(cpu_end - cpu_begin, now_s() - begin);
	host_engine_free(host);
	return in.failed;
}
