/*
 * The accounting of a sink's samples, and how far the history has been read: <spool>/ledger. At
 * every moment, taken = delivered + in the spool + unconfirmed + dropped by cause, also after a
 * SIGKILL.
 *
 * Two slots of one file, written in turn, each with a generation and a CRC: a torn write leaves the
 * other slot intact, and on a full disk both have their blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(ENUM, "name"): append only, the number is in the file */
#define LEDGER_CAUSES(X)                                                                        \
	X(REFUSED, "refused") /* the server rejects it for good */                              \
	X(TOO_LARGE, "too_large") /* too large for the server in one piece */                   \
	X(SPOOL_FULL, "spool_full") /* beyond spool_size: the oldest is dropped */              \
	X(SPOOL_AGE, "spool_age")                                                               \
	X(DISK_FULL, "disk_full") /* the spool's file could not be written */                   \
	X(SPOOL_LOST, "spool_lost") /* its file is gone or damaged */                           \
	X(NO_MEMORY, "no_memory") /* no memory, or the format cannot hold it */                 \
	X(NOT_STORED, "not_stored") /* windows that did not reach the history */                \
	X(THINNED, "thinned") /* left out to fit a size limit; the rest carries their weight */ \
	X(RESET, "reset") /* its request is reset each time, without an answer */

enum ledger_cause {
#define X(id, name) LEDGER_##id,
	LEDGER_CAUSES(X)
#undef X
		LEDGER_CAUSE_COUNT
};
extern const char *const ledger_cause_names[LEDGER_CAUSE_COUNT];
#define LEDGER_CAUSES_MAX 24 /* in the file */

struct ledger {
	uint64_t cursor_ns; /* the history has been read up to here; CLOCK_REALTIME */
	uint64_t next_seq; /* files of the spool from this number on are not counted yet */
	uint64_t done_seq; /* this file is already accounted for, even if it still exists; 0 = none
			    */
	uint64_t taken, delivered; /* samples */
	uint64_t lost_unconfirmed; /* given up, and may have arrived */
	uint64_t in_spool; /* taken - all the others */
	uint64_t dropped[LEDGER_CAUSES_MAX];
};

/* The newer valid slot of @dfd's file, or a new one: *ret_new. An fd for ledger_write(), or
 * -errno. */
int ledger_open(int dfd, struct ledger *ret, bool *ret_new);
/* 0 or -errno. @sync: also survives a crash of the machine. */
int ledger_write(int fd, const struct ledger *l, bool sync);
