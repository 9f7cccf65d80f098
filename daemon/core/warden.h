/*
 * kindlingd is two processes (docs/decisions/0014). The one that is started keeps root's rights and
 * becomes the warden: it starts the programs that work on JVMs, opens clocks of the kernel, and
 * passes signals on. It reads nothing that comes from a container. The other, the data process,
 * does everything else and gives up its rights (rights.h); for what still needs them it asks the
 * warden, by the functions of this file.
 *
 * The warden trusts the data process as little as possible: it starts only the programs that it was
 * configured with, with arguments of a fixed form, so that an attacker in the data process can have
 * JVMs attached to and detached from, and no more.
 *
 * Without a warden (tests; `user: root`) the same functions do the work themselves. They are called
 * from one thread.
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
	char programs[WARDEN_PROGRAM_COUNT][256]; /* paths; "" = it is not there */
	unsigned children_max[WARDEN_PROGRAM_COUNT]; /* that run at the same time */
	char library[256]; /* the agent */
	char socket[108]; /* removed when the data process has ended */
	char filters[108]; /* who reads seccomp filters listens there; "" = nobody does */
	char cri[108]; /* the container runtime listens there; "" = it is asked nothing */
	const char *file; /* of settings; NULL = none */
	const char *state_dir;
	/* to the service manager, for warden_report() */
	void (*tell)(unsigned what, const char *status);
};

/*
 * Makes two processes of this one. Returns in the data process alone: 0 or -errno; the warden
 * ends when the data process has, with its exit status. Before any thread is started.
 */
int warden_begin(const struct warden_settings *settings);

/*
 * Starts argv[0], which has to be one of the programs given to warden_begin(); symbols and names
 * without an environment. 0: *ret_pid, and *ret_pidfd which is the caller's. -EACCES: the warden
 * does not start that; -EAGAIN: as many of it run as may; -errno.
 */
int warden_start(enum warden_program program, char *const argv[], const struct warden_fd *fds,
		 unsigned n_fds, pid_t *ret_pid, int *ret_pidfd);
/* How often there were too many since the start. */
uint64_t warden_refused(void);
/* Has it ended? 1: yes, *ret_status is as from wait(2), with its CPU time; the pid is free again.
 * 0: not yet. -ECHILD: no such child. Both results may be NULL. */
int warden_reap(pid_t pid, int *ret_status, uint64_t *ret_cpu_ns);
/* SIGKILL for a child that warden_reap() has not taken. */
void warden_kill(pid_t pid);

/* A software clock event of the kernel, disabled, period in ns; of the CPU @cpu, or with -1 of the
 * calling thread, which is the main one. A descriptor or -errno. perf_event_open(2) */
int warden_open_clock(int cpu, uint64_t period_ns);

/*
 * What the service manager is told. It believes only the process that it has started
 * (NotifyAccess=main), which is the warden.
 *
 * @what:   bits of WARDEN_TELL_*
 * @status: a line for people, at most WARDEN_STATUS_MAX - 1 bytes of it; NULL = the last one stays
 *
 * Returns 0, or -ENOENT where there is no warden: the caller is who was started.
 */
#define WARDEN_TELL_READY     1u
#define WARDEN_TELL_RELOADING 2u
#define WARDEN_TELL_STOPPING  4u
#define WARDEN_TELL_WATCHDOG  8u
#define WARDEN_STATUS_MAX     400
int warden_report(unsigned what, const char *status);

/* Does somebody listen at @path, that of the settings where there is a warden? Only root may
 * connect to it. 1, 0, or -errno. */
int warden_filters_listen(const char *path);

/*
 * What may be asked of the container runtime (CRI, runtime.v1), at the socket of the settings. The
 * answer is read by kindling-names (WARDEN_NAMES), which gets the connection from the warden:
 * nobody else has it, and that program cannot write.
 */
enum warden_names {
	WARDEN_NAMES_CONTAINER, /* ListContainers, those with that id */
	WARDEN_NAMES_SANDBOX, /* ListPodSandbox likewise */
	WARDEN_NAMES_COUNT
};

#define WARDEN_NAMES_ID_SIZE	65 /* of an id, with its NUL */
#define WARDEN_NAMES_ANSWER_MAX (1u << 20) /* bytes that the runtime may send */
#define WARDEN_NAMES_FD		4 /* of that program: the questions come there */

/* To that program, beside each connection. */
struct warden_names_question {
	uint64_t number;
	uint32_t what; /* enum warden_names */
};

/*
 * Asks about @id, hexadecimal digits. @path: of the socket, where there is no warden, which has its
 * own. 0: the program has the connection, and will say @number with the answer. -EINVAL: not an id;
 * -ESRCH: the program does not run; -EAGAIN: it has too many questions; -errno of connect(2).
 */
int warden_ask_names(const char *path, enum warden_names what, const char *id, uint64_t number);

/* The settings file, opened again by the warden. A descriptor, -ENOENT without a warden, or
 * -errno. */
int warden_open_settings(void);
