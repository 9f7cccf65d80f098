/*
 * A table of targets, and for each a made-up injector and agent: the test's own program again,
 * started by the room as its injector. The "agent" word of the settings says how the two behave:
 *
 *   talk     as they should            refuse  a refusal for good        die     at once
 *   mute     an agent without a word   slow    an injector of 0.3 s      hang    for ever
 *   garbage  no frames at all          short   the pipe is closed after the first frames
 *   patient  an injector that waits until the test makes the mark "go"
 *   stranger  as they should, but the secret of its attach is not known to it
 *   loud     as they should, and says LOUD_FAULTS times that something failed
 *   greedy   as they should, and claims a sample of GREEDY_S seconds of CPU time
 *   rich     as they should, and says much: RICH_SAMPLES samples of RICH_NODES stacks
 *   flood    says new names, stacks and threads as fast as they are read, until it is killed
 *   steady   says STEADY_A_SECOND samples of the same stacks a second, until it is killed
 */
#pragma once

#include "tests/unit/unit.h"
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/target/target_priv.h"

#define RICH_METHODS	100u
#define RICH_NODES	200u
#define RICH_THREADS	20u
#define RICH_SAMPLES	300u
#define LOUD_FAULTS	500u
#define GREEDY_S	3600u
#define FLOOD_ROUND	2000u
#define STEADY_A_SECOND 500u

extern char dir[64]; /* of one test */
extern struct config config;
extern struct loop *loop;
extern struct targets *table;
unsigned count_targets(void);
extern pid_t process; /* stands for the JVM */
extern unsigned samples, freed;
/* how many targets the made-up host engine can sample; 0 = there is no engine */
extern uint64_t host_gives_ns;

int setup(void **state);
int teardown(void **state);
#define LIFE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
/* Call it first in main(): was this process started as an injector? */
bool is_injector(int argc, char **argv);
int injector(char **argv);
/* Executes the real injector, in bin/ beside the tests' directory. Returns if that fails. */
void injector_real(char **argv);
/* What an agent of another manner sends after a START; false = the same as in the manner "talk". */
extern bool (*more_agents)(const char *manner, int events, uint64_t session);

/* The deadline ends a test that hangs; it is long, because the machine may be busy. */
#define UNTIL(condition)                                             \
	do {                                                         \
		uint64_t until_ns = clock_mono_ns() + 60 * NS_PER_S; \
		while (!(condition) && clock_mono_ns() < until_ns)   \
			(void)loop_round(loop, 20 * NS_PER_MS);      \
		assert_true(condition);                              \
	} while (0)

void fill_in(struct jvm *jvm);
/* Reports a process to the table; its injector and agent behave in this @manner. */
struct target *add(const char *manner);
/* Frames that were read from its pipe so far. */
uint64_t frames_of(const struct target *t);
void end_process(void);
/* Adds a second process, which plays a JVM with the same name, libjvm and JDK. */
struct target *add_other(const char *manner);
void end_other(void);
/* Is there a file @name in dir? An injector that cleans up creates the mark "cleanup". */
void mark(const char *what);
bool marked(const char *what);

/* An agent that is in the JVM already, with its FIFOs; this process plays the JVM. */
extern char events_path[96];
extern int agent_fd; /* the agent's end of the events pipe */
/* does the table accept the agent's secret? true at the beginning of each test */
extern bool agent_known;
extern uint8_t agent_secret[WIRE_SECRET_BYTES]; /* fields of the HELLO that made-up agents send */
#define AGENT_SECRET                                          \
	{                                                     \
		(const char *)agent_secret, WIRE_SECRET_BYTES \
	}
int make_fifos(void);
void remove_fifos(void);
struct target *add_with_fifos(const char *events, int *ret_control);
/* Reads what the daemon has written to the agent's control pipe, once it has come. */
size_t read_control(int control, uint8_t *buf, size_t size);
/* The first frame that an agent sends. */
void hello(int events, uint64_t session);
