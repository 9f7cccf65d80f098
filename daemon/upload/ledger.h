/*
 * <spool>/ledger: the accounting of a sink's samples, and how far it has read the history. At every
 * moment, also after a SIGKILL: taken = delivered + in the spool + unconfirmed + dropped by cause.
 *
 * The file has two slots, written in turn, each with a generation and a CRC. A torn write leaves
 * the other slot intact. Both have their blocks from the start, so a full disk does not stop the
 * accounting.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* X(ENUM, "name"): only append, because the file has the numbers */
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
#define LEDGER_CAUSES_MAX 24 /* room for causes in the file */

struct ledger {
	uint64_t cursor_ns; /* the history has been read up to here; CLOCK_REALTIME */
	uint64_t next_seq; /* files of the spool from this number on are not counted yet: left from
			      an interrupted write */
	uint64_t done_seq; /* this file is accounted for, even if it still exists; 0 = none */
	uint64_t taken, delivered; /* samples */
	uint64_t lost_unconfirmed; /* given up without an answer: they may have arrived */
	uint64_t in_spool; /* taken minus all the others */
	uint64_t dropped[LEDGER_CAUSES_MAX];
};

/* Reads the newer valid slot of the file in @dfd; without any begins a new file (*ret_new).
 * Returns an fd for ledger_write(), or -errno. */
int ledger_open(int dfd, struct ledger *ret, bool *ret_new);
/* Writes the older slot. @sync: the write survives a crash of the machine. 0 or -errno. */
int ledger_write(int fd, const struct ledger *l, bool sync);
