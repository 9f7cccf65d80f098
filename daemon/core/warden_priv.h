/* The messages between the data process and the warden, and the functions that do the work. */
#pragma once

#include <stdbool.h>
#include "daemon/core/warden.h"

#define WARDEN_ARGS_MAX	 16
#define WARDEN_BYTES_MAX 4096 /* of all arguments */

enum warden_ask {
	WARDEN_START,
	WARDEN_REAP,
	WARDEN_KILL,
	WARDEN_CLOCK,
	WARDEN_SETTINGS,
	WARDEN_TELL,
	WARDEN_FILTERS,
	WARDEN_ASK_NAMES
};

struct warden_question {
	uint32_t ask;
	int32_t pid; /* REAP, KILL */
	int32_t cpu; /* CLOCK */
	uint64_t period_ns;
	uint64_t number; /* ASK_NAMES; the id is args[0] */
	uint32_t names; /* ASK_NAMES: enum warden_names */
	uint32_t tell; /* TELL: bits; the status is args[0], if there is one */
	uint32_t program; /* START */
	uint32_t n_fds;
	int32_t as[WARDEN_FDS_MAX];
	uint32_t n_args;
	char args[WARDEN_BYTES_MAX]; /* each with its NUL; unused bytes are not sent */
};

struct warden_answer {
	int32_t result;
	int32_t pid; /* START */
	int32_t status; /* REAP */
	uint32_t full; /* START: children_max of that program run already */
	uint64_t cpu_ns;
};

/* warden_run.c: serves @fd until the data process @data has ended. Returns the warden's exit
 * status. */
int warden_run(int fd, pid_t data, const struct warden_settings *settings);

/* Finds the arguments in @q, whose args have @len bytes; argv points into it. false = malformed. */
bool warden_take_args(struct warden_question *q, size_t len, char *argv[WARDEN_ARGS_MAX + 1]);
/* warden_check.c: may the data process have this command started? 0 or -EACCES. */
int warden_check(const struct warden_settings *s, enum warden_program program, char *const argv[]);

/* warden_children.c: do children_max of @program run already? */
bool warden_children_full(const struct warden_settings *s, enum warden_program program);
void warden_children_add(pid_t pid, enum warden_program program);
bool warden_children_has(pid_t pid);
void warden_children_remove(pid_t pid); /* its end has been reported; unknown pids are ignored */

/* warden_work.c: the work itself, in the process that has the rights. Results as in warden.h. */
int warden_work_start(enum warden_program program, char *const argv[], const struct warden_fd *fds,
		      unsigned n_fds, pid_t *ret_pid, int *ret_pidfd);
int warden_work_kill(pid_t pid);
int warden_work_filters_listen(const char *path);
/* warden_names.c */
int warden_work_names(const char *path, enum warden_names what, const char *id, uint64_t number);
/* Opens the connection to a kindling-names that is about to be started; the previous one's is
 * closed. Returns the descriptor for WARDEN_NAMES_FD, which the caller owns, or -errno. */
int warden_names_open(void);
/* Writes all bytes of a request to the runtime. Returns their number; 0: @id is not an id. Pure. */
#define WARDEN_NAMES_REQUEST_MAX 400
size_t warden_names_request(enum warden_names what, const char *id,
			    uint8_t ret[WARDEN_NAMES_REQUEST_MAX]);
int warden_work_clock(int cpu, pid_t thread, uint64_t period_ns);

/* warden.c: a message of a SOCK_SEQPACKET socket, with descriptors. The number of bytes or -errno.
 * @ret_fds: room for WARDEN_FDS_MAX; the caller owns the received descriptors. */
ssize_t warden_send(int fd, const void *p, size_t len, const int *fds, unsigned n_fds);
ssize_t warden_receive(int fd, void *p, size_t size, int *ret_fds, unsigned *ret_n_fds);
