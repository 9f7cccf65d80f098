/*
 * What goes to kindling-look, and what comes back: one message each, of a fixed size, and
 * descriptors beside it. All that is asked of a foreign process may keep whoever looks waiting for
 * ever: its memory (environ, cmdline), its file systems (root, cwd, libraries), and the lock of its
 * address space (maps) that it may hold while it waits for either.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "daemon/discovery/facts.h"
#include "daemon/discovery/jvm.h"

#define LOOK_PATH_MAX 1024 /* with its NUL */
#define LOOK_FDS      2 /* at most, beside an answer */

enum look_kind {
	LOOK_JVM, /* is it one, and which? whoever has the number; jvm */
	LOOK_FACTS, /* what decides whether it may be attached to; beside the question: the rules */
	LOOK_CWD, /* beside the answer: its working directory */
	LOOK_HS_ERR, /* did HotSpot write its last words into the directory beside the question? */
	LOOK_MAPPED, /* beside the answer: a file that it maps, and its root; file */
	LOOK_KIND_COUNT
};

struct look_question {
	uint64_t number;
	uint32_t kind;
	int32_t pid;
	uint64_t start_time; /* of the process that is meant; LOOK_JVM and LOOK_HS_ERR: not read */
	union {
		struct {
			int32_t ns_pid; /* in the file's name */
			uint32_t uid; /* whose it has to be */
			int64_t since_s; /* and not older, real time */
		} hs_err;
		struct {
			uint64_t begin, end; /* of the mapping */
			char path[LOOK_PATH_MAX]; /* below the root, where begin and end say nothing
						   */
		} mapped;
	};
};

/* Descriptors are all O_PATH: for those nothing is asked of a file system, also when they are
 * closed. An open file may wait for its own close (FUSE's flush): who reads it opens it anew, in a
 * process that may wait. */
struct look_answer {
	uint64_t number;
	/* JVM: of jvm_probe(); HS_ERR: 1 or 0; others: 0. -errno: there is no answer but that;
	 * -ESRCH: the process is gone, -ETIMEDOUT: it did not answer, -EBUSY: too many of its
	 * tenant's do not, -EIO: kindling-look has died */
	int32_t result;
	uint64_t took_ns; /* to find out */
	union {
		struct jvm jvm;
		struct facts facts;
		struct stat file; /* MAPPED: a regular file; its descriptor is the first */
	};
};

/* The answer to @q, found out here: it may take for ever. @fd: beside the question, -1 = none;
 * @fds: beside the answer, all -1 when called. */
void look_find_out(int proc_dfd, const struct look_question *q, int fd, struct look_answer *ret,
		   int fds[LOOK_FDS]);

/* One message and the descriptors of @fds before the first -1. 0 or -errno. */
int look_send(int socket_fd, const void *message, size_t len, const int *fds, size_t n_fds,
	      int flags);
/* Its length, or -errno; what came beside it is in @fds, the others are -1. */
ssize_t look_receive(int socket_fd, void *message, size_t len, int fds[LOOK_FDS], int flags);
