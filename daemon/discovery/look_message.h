/*
 * Messages to kindling-look and back: a question and an answer of fixed sizes, with descriptors.
 * Whatever is read from a foreign process may block the reader forever: its memory (environ,
 * cmdline), its file systems (root, cwd, libraries), and the lock of its address space (maps),
 * which the process may hold while it waits for either.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "daemon/discovery/facts.h"
#include "daemon/discovery/jvm.h"

#define LOOK_PATH_MAX 1024 /* including the NUL */
#define LOOK_FDS      2 /* descriptors that come with an answer, at most */

enum look_kind {
	/* is the process that has this pid now a JVM, and which one? Answer: jvm */
	LOOK_JVM,
	/* the facts that decide whether it may be attached to; the question comes with a descriptor
	 * of the rules. Answer: facts */
	LOOK_FACTS,
	/* its working directory. Answer: a descriptor */
	LOOK_CWD,
	/* has HotSpot written its crash log into the directory whose descriptor comes with the
	 * question? Answer: result */
	LOOK_HS_ERR,
	/* a file that it has mapped. Answer: file, and descriptors of the file and of its root */
	LOOK_MAPPED,
	LOOK_KIND_COUNT
};

struct look_question {
	uint64_t number;
	uint32_t kind;
	int32_t pid;
	uint64_t start_time; /* of the process, clock ticks; LOOK_JVM and LOOK_HS_ERR: not used */
	union {
		struct {
			int32_t ns_pid; /* pid in the file's name */
			uint32_t uid; /* expected owner */
			int64_t since_s; /* the file must be as new, CLOCK_REALTIME */
		} hs_err;
		struct {
			uint64_t begin, end; /* of the mapping */
			char path[LOOK_PATH_MAX]; /* used if the mapping cannot be opened */
		} mapped;
	};
};

/* All descriptors are O_PATH, which closing does not block. Closing a file that is really open may
 * block (FUSE's flush), so the receiver reopens it only in a process that may block. */
struct look_answer {
	uint64_t number;
	/* JVM: the result of jvm_probe(); HS_ERR: 1 = yes, 0 = no; others: 0. Or -errno, and
	 * nothing else is valid: -ESRCH: the process has ended, -ETIMEDOUT: the child did not
	 * answer, -EBUSY: too many processes of its tenant block children, -EIO: kindling-look has
	 * died */
	int32_t result;
	uint64_t took_ns; /* how long the child worked on it */
	union {
		struct jvm jvm;
		struct facts facts;
		struct stat file; /* MAPPED: a regular file; its descriptor is fds[0] */
	};
};

/* Finds the answer to @q in this process, which may block forever. @fd: the question's descriptor,
 * -1 = none; @fds: those of the answer, all -1 before the call. */
void look_find_out(int proc_dfd, const struct look_question *q, int fd, struct look_answer *ret,
		   int fds[LOOK_FDS]);

/* Sends one message and the descriptors of @fds before the first -1. 0 or -errno. */
int look_send(int socket_fd, const void *message, size_t len, const int *fds, size_t n_fds,
	      int flags);
/* Receives one message. Returns its length, or -errno. Its descriptors are in @fds, the rest of
 * which is -1; the caller owns them. */
ssize_t look_receive(int socket_fd, void *message, size_t len, int fds[LOOK_FDS], int flags);
