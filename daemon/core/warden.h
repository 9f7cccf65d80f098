/*
 * kindlingd consists of two processes (docs/decisions/0014). The one that is started keeps root's
 * rights and becomes the warden: it starts the programs that work on JVMs, opens clock events of
 * the kernel, and passes signals on. It reads nothing that comes from a container. The other one,
 * the data process, does everything else and gives up its rights (rights.h). For what needs them it
 * asks the warden, with the functions of this file.
 *
 * The warden trusts the data process as little as possible: it starts only the programs that it was
 * configured with, with arguments of a fixed form, so that an attacker who controls the data
 * process can only attach to JVMs and detach from them.
 *
 * Without a warden (tests; `user: root`) the same functions do the work themselves. They may be
 * called from one thread only.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define WARDEN_FDS_MAX 5

enum warden_program {
	WARDEN_INJECTOR,
	WARDEN_LOOK,
	WARDEN_SYMBOLS,
	WARDEN_UPLOAD,
	WARDEN_NAMES,
	WARDEN_PROGRAM_COUNT
};

struct warden_fd {
	int fd; /* borrowed; -1 = none */
	int as; /* its number in the program */
};

struct warden_settings {
	char programs[WARDEN_PROGRAM_COUNT][256]; /* paths; "" = not installed */
	unsigned children_max[WARDEN_PROGRAM_COUNT]; /* processes that may run at the same time */
	char library[256]; /* path of the agent */
	char socket[108]; /* of the API; removed when the data process has ended */
	char filters[108]; /* socket of the process that reads seccomp filters; "" = none */
	char cri[108]; /* socket of the container runtime; "" = it is not asked */
	const char *file; /* path of the settings; NULL = none */
	const char *state_dir;
	/* reports to the service manager, for warden_report(); NULL = there is none */
	void (*tell)(unsigned what, const char *status);
};

/*
 * Splits this process in two. Returns only in the data process: 0 or -errno. The warden ends when
 * the data process has ended, with its exit status. To be called before any thread is started.
 */
int warden_begin(const struct warden_settings *settings);

/*
 * Starts argv[0], which must be one of the programs given to warden_begin(). WARDEN_SYMBOLS and
 * WARDEN_NAMES get an empty environment. 0 with *ret_pid, and *ret_pidfd which the caller owns;
 * -EACCES: the warden refuses this command; -EAGAIN: children_max of it run already; or another
 * -errno.
 */
int warden_start(enum warden_program program, char *const argv[], const struct warden_fd *fds,
		 unsigned n_fds, pid_t *ret_pid, int *ret_pidfd);
/* How often warden_start() was refused because children_max were running, since the start. */
uint64_t warden_refused(void);
/* Has the child ended? 1: yes; *ret_status is as from wait(2), *ret_cpu_ns its CPU time, and its
 * pid becomes free soon (release.h). 0: not yet. -ECHILD: there is no such child, or its end has
 * been reported already. Both results may be NULL. */
int warden_reap(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns);
/* Sends SIGKILL to a child for which warden_reap() has not returned 1. */
void warden_kill(pid_t pid);

/* Opens a disabled clock event of the kernel (PERF_COUNT_SW_CPU_CLOCK) with the period @period_ns,
 * for the CPU @cpu, or with -1 for the main thread, which is the caller. Returns a descriptor or
 * -errno. perf_event_open(2) */
int warden_open_clock(int cpu, uint64_t period_ns);

/*
 * Reports to the service manager, which accepts reports only from the process that it has started
 * (NotifyAccess=main), and that is the warden.
 *
 * @what:   bits of WARDEN_TELL_*
 * @status: a line for users, of which WARDEN_STATUS_MAX - 1 bytes are used; NULL = unchanged
 *
 * Returns 0, or -ENOENT if there is no warden: then the caller itself was started by the manager.
 */
#define WARDEN_TELL_READY     1u
#define WARDEN_TELL_RELOADING 2u
#define WARDEN_TELL_STOPPING  4u
#define WARDEN_TELL_WATCHDOG  8u
#define WARDEN_STATUS_MAX     400
int warden_report(unsigned what, const char *status);

/* Does the process that reads seccomp filters listen at @path? Only root may connect. A warden uses
 * the path of its settings instead. 1 = yes, 0 = no, or -errno. */
int warden_filters_listen(const char *path);

/*
 * Requests to the container runtime (CRI, runtime.v1), at the socket in the settings. The warden
 * sends the request and passes the connection to kindling-names (WARDEN_NAMES), which reads the
 * answer and cannot write.
 */
enum warden_names {
	WARDEN_NAMES_CONTAINER, /* ListContainers, filtered by an id */
	WARDEN_NAMES_SANDBOX, /* ListPodSandbox, filtered by an id */
	WARDEN_NAMES_COUNT
};

#define WARDEN_NAMES_ID_SIZE	65 /* of an id, including the NUL */
#define WARDEN_NAMES_ANSWER_MAX (1u << 20) /* bytes that the runtime may send */
#define WARDEN_NAMES_FD		4 /* kindling-names gets the connections at this descriptor */

/* Sent to kindling-names together with each connection. */
struct warden_names_question {
	uint64_t number;
	uint32_t what; /* enum warden_names */
};

/*
 * Asks the runtime about @id, hexadecimal digits. @path: the runtime's socket; a warden uses the
 * one in its settings instead. 0: kindling-names has the connection, and will answer with @number.
 * -EINVAL: not an id; -ESRCH: kindling-names does not run; -EAGAIN: too many questions; or -errno
 * of connect(2).
 */
int warden_ask_names(const char *path, enum warden_names what, const char *id, uint64_t number);

/* Opens the settings file again. Returns a descriptor, which the caller owns; -ENOENT without a
 * warden; or another -errno. */
int warden_open_settings(void);
