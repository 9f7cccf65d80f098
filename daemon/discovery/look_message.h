/*
 * Messages to kindling-look and back: one message each, of a fixed size, with descriptors beside
 * it. Anything read from a foreign process may block its reader for ever: its memory (environ,
 * cmdline), its file systems (root, cwd, libraries), and the lock of its address space (maps),
 * which it may hold while it waits for either.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "daemon/discovery/facts.h"
#include "daemon/discovery/jvm.h"

#define LOOK_PATH_MAX 1024 /* with its NUL */
#define LOOK_FDS      2 /* at most this many beside an answer */

enum look_kind {
	LOOK_JVM, /* is it a JVM, and which? For the process with this number; jvm */
	LOOK_FACTS, /* the facts that decide whether it may be attached to; beside the question: the
		     * rules */
	LOOK_CWD, /* beside the answer: its working directory */
	LOOK_HS_ERR, /* did HotSpot write its crash log into the directory beside the question? */
	LOOK_MAPPED, /* beside the answer: a file that it maps, and its root; file */
	LOOK_KIND_COUNT
};

struct look_question {
	uint64_t number;
	uint32_t kind;
	int32_t pid;
	uint64_t start_time; /* start time of the process; LOOK_JVM and LOOK_HS_ERR: not read */
	union {
		struct {
			int32_t ns_pid; /* pid in the file's name */
			uint32_t uid; /* expected owner */
			int64_t since_s; /* oldest time of the file, real time */
		} hs_err;
		struct {
			uint64_t begin, end; /* of the mapping */
			char path[LOOK_PATH_MAX]; /* path below the root, where begin and end are
						   * unknown */
		} mapped;
	};
};

/* All descriptors are O_PATH: the file system is not involved, even when they are closed. Closing
 * an open file may block (FUSE's flush), so the receiver reopens it in a process that may block. */
struct look_answer {
	uint64_t number;
	/* JVM: result of jvm_probe(); HS_ERR: 1 or 0; others: 0. -errno: there is no other answer;
	 * -ESRCH: the process is gone, -ETIMEDOUT: it did not answer, -EBUSY: too many processes of
	 * its tenant do not answer, -EIO: kindling-look has died */
	int32_t result;
	uint64_t took_ns; /* time that finding the answer took */
	union {
		struct jvm jvm;
		struct facts facts;
		struct stat file; /* MAPPED: a regular file; its descriptor is the first */
	};
};

/* Finds the answer to @q in this process: may block for ever. @fd: beside the question, -1 = none;
 * @fds: beside the answer, all -1 when called. */
void look_find_out(int proc_dfd, const struct look_question *q, int fd, struct look_answer *ret,
		   int fds[LOOK_FDS]);

/* Sends one message and the descriptors of @fds before the first -1. 0 or -errno. */
int look_send(int socket_fd, const void *message, size_t len, const int *fds, size_t n_fds,
	      int flags);
/* Receives one message. Its length, or -errno; descriptors beside it are in @fds, the others are
 * -1. */
ssize_t look_receive(int socket_fd, void *message, size_t len, int fds[LOOK_FDS], int flags);
