/*
 * Reads seccomp filters for a kindlingd that cannot read them: the kernel shows a process the
 * filters of others only while it has none itself (PTRACE_SECCOMP_GET_FILTER in ptrace(2)), and a
 * hardened service has one. So a small process without a filter (`kindling-inject filters`,
 * deploy/systemd/kindling-filters.service) answers one question on a socket that only root may
 * open: which system call of the agent would end this process?
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct inject;

#define FILTERS_SOCKET "/run/kindling-filters.sock"
/* another path, in the injector's environment */
#define FILTERS_SOCKET_ENV "KINDLING_FILTERS_SOCKET"

/* Question and answer are one message each over a SOCK_SEQPACKET socket, in the host's byte
 * order. */
struct filters_question {
	/* field 22 of /proc/PID/stat, which identifies the process with that pid */
	uint64_t start_time;
	int32_t pid;
	uint32_t version; /* FILTERS_VERSION */
};
struct filters_answer {
	int32_t result; /* 0, or -errno: the filters could not be read */
	char call[28]; /* the system call that would end the process; "" = none */
};
#define FILTERS_VERSION 1

/*
 * Asks about the target of @in. Waits two seconds at most.
 *
 * @ret_call: the name of the call that would end it, "" = none; set on success only.
 *
 * Returns 0, or -errno: -EACCES if no process listens at the socket, else the reason why the
 * filters cannot be read.
 */
int filters_ask(const struct inject *in, char *ret_call, size_t size);

/*
 * Answers questions, and returns when none has come for half a minute.
 *
 * @path: listen there, until a signal ends the process; NULL: answer on the socket that the service
 * manager passed (sd_listen_fds(3)), which itself listens again after this process has ended
 *
 * Returns an exit status. Errors of the socket are printed to stderr.
 */
int filters_serve(const char *path);
