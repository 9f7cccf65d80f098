/* Between the two halves of the warden, and the work itself. */
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
	char args[WARDEN_BYTES_MAX]; /* one after the other, each with its NUL; only these are sent
				      */
};

struct warden_answer {
	int32_t result;
	int32_t pid; /* START */
	int32_t status; /* REAP */
	uint32_t full; /* START: too many of that program run */
	uint64_t cpu_ns;
};

/* In the warden: serves @fd until the data process @data has ended; its exit status. */
int warden_run(int fd, pid_t data, const struct warden_settings *settings);

/* The arguments in the request, @len bytes in all; false = it is malformed. */
bool warden_take_args(struct warden_question *q, size_t len, char *argv[WARDEN_ARGS_MAX + 1]);
/* May the data process have that started? warden_check.c */
int warden_check(const struct warden_settings *s, enum warden_program program, char *const argv[]);

/* In the warden: are there as many children of @program as there may be? warden_children.c */
bool warden_children_full(const struct warden_settings *s, enum warden_program program);
void warden_children_add(pid_t pid, enum warden_program program);
void warden_children_remove(pid_t pid); /* it was waited for; others are left alone */

/* The work itself, for the process that has the rights: warden_work.c. */
int warden_work_start(enum warden_program program, char *const argv[], const struct warden_fd *fds,
		      unsigned n_fds, pid_t *ret_pid, int *ret_pidfd);
int warden_work_reap(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns);
int warden_work_kill(pid_t pid);
int warden_work_filters_listen(const char *path);
/* warden_names.c: asks; the descriptor for the program's WARDEN_NAMES_FD, or -errno: what was asked
 * of one before is over. */
int warden_work_names(const char *path, enum warden_names what, const char *id, uint64_t number);
int warden_names_open(void);
/* All that is sent to the runtime, and its length; 0: @id is not an id. Pure. */
#define WARDEN_NAMES_WORDS_MAX 400
size_t warden_names_words(enum warden_names what, const char *id,
			  uint8_t ret[WARDEN_NAMES_WORDS_MAX]);
int warden_work_clock(int cpu, pid_t thread, uint64_t period_ns);

/* One message of SOCK_SEQPACKET and descriptors beside it; warden.c. */
ssize_t warden_send(int fd, const void *p, size_t len, const int *fds, unsigned n_fds);
ssize_t warden_receive(int fd, void *p, size_t size, int *ret_fds, unsigned *ret_n_fds);
