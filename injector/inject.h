/* What the parts of kindling-inject share: one target and what is known of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/core/fault.h"
#include "daemon/core/mem.h"

struct inject {
	pid_t pid; /* host pid */
	pid_t ns_pid; /* last of NSpid: the number in .java_pidN */
	uint64_t start_time;
	uid_t uid; /* effective, as the host numbers it */
	gid_t gid;
	int pidfd;
	int proc_dfd; /* /proc/PID */
	int root_dfd; /* O_PATH of /proc/PID/root: all paths are resolved in it */
	int cwd_dfd; /* O_PATH of /proc/PID/cwd */
	uint64_t deadline_mono_ns;
	char attach_file[32]; /* ".attach_pidN" */
	int attach_dfd; /* where it was made; -1 = it was not */
	struct fault *fault;
};

#define INJECT_NULL { .pidfd = -1, .proc_dfd = -1, .root_dfd = -1, .cwd_dfd = -1, .attach_dfd = -1 }

/* proc.c: text of /proc, capped. */
ssize_t proc_read(int dfd, const char *name, char *buf, size_t size); /* NUL-terminated; -errno */
uint64_t proc_start_time(const char *stat); /* field 22; 0 = malformed */
char proc_state(const char *stat); /* field 3 */
bool proc_status_field(const char *status, const char *key, char *ret, size_t size);
uint64_t proc_signal_mask(const char *status, const char *key); /* "SigCgt:" as bits */
bool inject_alive(const struct inject *in); /* the pidfd still answers and the start time is the same */

/* preflight.c: everything that may say no before the target is touched. 0 or -errno + fault. */
int preflight(struct inject *in);
/* Looks for @option in a command line or environment list (NUL-separated); the last one wins:
 * 1 = "-XX:+Name", 0 = "-XX:-Name", -1 = not there. */
int preflight_flag(const char *list, size_t len, const char *name);

/* files.c: openat2 in the target's root, as the target's own uid and gid. */
int files_as_target(const struct inject *in); /* fsuid, fsgid; 0 or -errno */
void files_as_root(void);
int files_open(const struct inject *in, int dfd, const char *path, int flags, mode_t mode);
int files_mkdirs(const struct inject *in, const char *path); /* O_PATH fd of the last one */

/* place.c: the library and the FIFOs in /tmp/kindling/<version>/. */
struct placement {
	int dir_dfd;
	char dir[64]; /* "/tmp/kindling/0.1.0", as the target sees it */
	char library[64], events[48], control[48]; /* names in it */
	int events_fd, control_fd;
	bool made_library;
};
#define PLACEMENT_NULL { .dir_dfd = -1, .events_fd = -1, .control_fd = -1 }
int place(const struct inject *in, int library_fd, bool quiet, size_t pipe_bytes,
	  struct placement *ret);
/* Remove names; also the directories when nothing else is in them. */
void place_remove(const struct inject *in, struct placement *p);
/* Remove what a killed attempt of ours may have left. */
void place_cleanup(const struct inject *in);

/* attach_hotspot.c: the handshake. @ret_socket is connected and belongs to the target. */
int attach_connect(struct inject *in, int *ret_socket);
/* Sends a command of up to 4 words; the reply (capped, NUL-terminated) goes into @reply. */
int attach_command(const struct inject *in, int socket, const char *const words[4], char *reply,
		   size_t size);
void attach_forget(struct inject *in); /* .attach_pid, when no SIGQUIT can be pending any more */

/* reply.c: 0, or -errno + fault for what the JVM answered to `load`. Pure. */
int reply_check_load(const char *reply, struct fault *f);
