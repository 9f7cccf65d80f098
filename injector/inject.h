/* What the parts of kindling-inject share: one target and what is known of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "daemon/ground/fault.h"
#include "daemon/ground/mem.h"
#include "injector/result.h"

enum runtime { RUNTIME_NONE, RUNTIME_HOTSPOT, RUNTIME_OPENJ9 };

/* maps.c: reads /proc/PID/maps. */
struct maps {
	enum runtime runtime;
	uint64_t libjvm; /* address at which libjvm.so begins; 0 = unknown */
	int copies; /* copies of the agent that earlier attaches left mapped */
};

struct vmmemory;

struct inject {
	pid_t pid; /* host pid */
	pid_t ns_pid; /* last of NSpid: the number in .java_pidN */
	uint64_t start_time;
	uid_t uid; /* effective, as the host numbers it */
	gid_t gid;
	uid_t keeper_uid; /* root of the target's user namespace; the target itself if that has no
			   * root */
	gid_t keeper_gid;
	int pidfd;
	int proc_dfd; /* /proc/PID */
	int root_dfd; /* O_PATH of /proc/PID/root: all paths are resolved in it */
	int mnt_ns_fd; /* its mount namespace; -1 = nothing can be mounted in it */
	int cgroup_dfd; /* /sys/fs/cgroup; -1 = not there */
	struct maps maps; /* as the preflight saw them */
	struct vmmemory *memory; /* vmmemory.c; NULL = not opened yet */
	uint64_t deadline_mono_ns;
	/* --check: the target is not changed, and what cannot be read is reported */
	bool only_checks;
	/* with only_checks: a thread may be stopped to read its seccomp filters */
	bool reads_seccomp;
	bool loads; /* an agent is to be loaded, which the owner may forbid */
	char attach_file[32]; /* ".attach_pidN" */
	int attach_dfd; /* directory in which .attach_pidN was made; -1 = it was not made */
	int attach_fd; /* .attach_pidN itself, locked */
	bool may_cover; /* a tmpfs may be laid over its /tmp */
	int cover_fd; /* root of the existing one, locked; -1 = none */
	int covered_fd; /* the directory that the tmpfs covers, locked */
	/* something could not be removed, because the target stands still: it must be removed
	 * later */
	bool left;
	const char *found; /* a finding of a check that is no reason to refuse; NULL = none */
	struct fault *fault;
};

#define INJECT_NULL                                                                             \
	{                                                                                       \
		.pidfd = -1, .proc_dfd = -1, .root_dfd = -1, .cgroup_dfd = -1, .mnt_ns_fd = -1, \
		.attach_dfd = -1, .attach_fd = -1, .cover_fd = -1, .covered_fd = -1             \
	}

int inject_remaining_ms(const struct inject *in); /* time to the deadline; 0 = it has passed */
void inject_pause_ms(int ms);
void inject_pause_us(int us);

/* main.c: functions that commands.c uses, too. */
#define INJECT_REPLY_MAX (1u << 20)
int inject_open(struct inject *in); /* opens the target's descriptors. 0, or -errno + fault */
int inject_prepare(struct inject *in); /* the same, then the preflight. 0, or -errno + fault */

/* commands.c: kindling-inject by hand. Exit statuses. */
int commands_run(struct inject *in, char **argv); /* @argv: the arguments after the pid */
int commands_help(bool wrong);
/* Prints what is wrong with the arguments to stderr. Returns -1. */
int commands_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* alive.c: the pidfd still answers and the start time is the same. */
bool inject_alive(const struct inject *in);

/* maps.c: one pass over /proc/PID/maps. 0 or -errno. */
int maps_read(int proc_dfd, struct maps *ret);

/* options.c: the options that the owner gave to the JVM. Pure. */
struct options {
	int disable_attach; /* -XX:+/-DisableAttachMechanism: 1, 0, -1 = not given */
	int dynamic_loading; /* -XX:+/-EnableDynamicAgentLoading */
	bool xrs; /* -Xrs */
	bool crac; /* -XX:CRaCCheckpointTo=... */
};
#define OPTIONS_NULL                                        \
	{                                                   \
		.disable_attach = -1, .dynamic_loading = -1 \
	}
/* Finds an option in a command line or environment list (NUL-separated). The last one counts: 1 =
 * "-XX:+Name", 0 = "-XX:-Name", -1 = it is not there. */
int options_flag(const char *list, size_t len, const char *name);
/* Reads @cmdline and @environ in the order of the JVM, in which later options win. */
void options_read(struct options *o, const char *cmdline, size_t cmdline_len, const char *environ,
		  size_t environ_len);

/* cgroup.c: room for our threads and our memory, and not frozen. 0 or -EAGAIN + fault. */
int cgroup_check(struct inject *in);
bool cgroup_is_frozen(const struct inject *in);

/* jdk.c: checks for known bugs of the target's JDK. 0 or -errno + fault. */
int jdk_check(struct inject *in);
bool jdk_makes_sockets_again(struct inject *in); /* false = no, or not known */
/* the JVM listens, but the name of its socket is gone */
bool jdk_lost_its_socket(const struct inject *in);
/* The inode of the socket on which the JVM with the number @ns_pid listens, from a line of
 * /proc/PID/net/unix; 0 = the line is about another socket. Pure. */
uint64_t jdk_socket_inode(const char *line, int ns_pid);

/* copies.c: limits the copies of the agent in one JVM. 0 or -ENOSPC + fault. */
#define COPIES_MAX 64
int copies_check(struct inject *in);
bool copies_is_one(const char *line); /* Is this line of /proc/PID/maps the code of a copy? Pure. */

/* events.c: which events the JVM can provide, for `check`. 0, or -errno + fault: unknown. */
int events_check(struct inject *in);

/* nproc.c: room for our threads in RLIMIT_NPROC. 0 or -EAGAIN + fault. */
int nproc_check(struct inject *in);

/* preflight.c: all checks that may refuse the attach before the target is touched. 0 or -errno +
 * fault. */
int preflight(struct inject *in);
struct check {
	const char *name;
	int (*run)(struct inject *in); /* 0, or -errno + fault */
	const char *ok; /* text if the check passes */
	const char *change; /* text if it fails: what would help */
	const char *tell; /* text if it cannot be made: what it needs; NULL = root */
};
extern const struct check preflight_checks[]; /* in the order in which they run */
extern const size_t preflight_check_count;
int preflight_identity(struct inject *in); /* the part that a cleanup needs, too */

/* check.c: prints the preflight for a user. It runs all checks, even after one has failed, and
 * prints one line (JSON: one object) each to stdout. Returns 0; 1 = a check has failed; 2 = none
 * has failed, but one could not be made. */
int check_all(struct inject *in, bool json);
void check_say_unseen(bool json, const char *name, const struct fault *f);

/* files.c: openat2 in the target's root, with the ids of the target or of its root. */
int files_as_target(const struct inject *in); /* fsuid, fsgid; 0 or -errno */
int files_as_keeper(const struct inject *in);
void files_as_root(void);
int files_open(int dfd, const char *path, int flags, mode_t mode);
/*
 * Opens @name in @dfd with the ids that the caller has taken on, but only after checking that it is
 * of @type (S_IFREG, S_IFIFO) and belongs to @uid (FILES_ANY = to anyone): the target chooses what
 * is there, and opening some devices has effects. An fd, or -errno; -EPROTO = it is something else.
 */
#define FILES_ANY ((uid_t)-1)
int files_open_seen(int dfd, const char *name, int flags, mode_t type, uid_t uid);
/* /tmp of the target, O_PATH; if it is a symbolic link, its destination inside the root. */
int files_open_tmp(const struct inject *in);
/* Is it owned by the target or its root, and can no one else rename entries in it? */
bool files_is_private(const struct inject *in, int fd, struct stat *ret);

/* library.c: the agent's library, and a trustworthy copy of it. */
struct library {
	uint8_t *bytes;
	size_t len;
	uint64_t hash; /* hash of the content, which is part of the copy's name */
};
int library_read(int fd, struct library *ret);
/* Makes @name in @dfd a file with the library's content, whatever is there now, with the ids that
 * the caller has taken on. */
int library_write(int dfd, const char *name, const struct library *l);

/* mount.c: the library on a separate tmpfs. All return 0 or -errno. */
#define MOUNT_SOURCE "kindling" /* in the first word of mount(8)'s lines */
/* makes a detached, read-only mount. *ret: its descriptor, owned by the caller */
int mount_make(const struct library *l, const char *name, int *ret);
int mount_attach(const struct inject *in, int mount_fd, int dir_fd);
/* @mount_fd: descriptor of the mount's root */
int mount_detach(const struct inject *in, int mount_fd);
/* makes a detached mount in which every user may write */
int mount_make_cover(size_t bytes, unsigned files, int *ret);
bool mount_is_ours(int dfd);

/*
 * cover.c: a tmpfs over the target's /tmp during an attach, for a JVM that can write nowhere in
 * /tmp and so cannot make its attach socket. Only if the settings allow it: during that time the
 * container's own /tmp is hidden, and others may write to the tmpfs.
 */
/* Waits until the tmpfs of another attempt is gone. A tmpfs that a killed attempt left is taken
 * over by @in. 1 = taken over, 0 = there is none, or -errno + fault. */
int cover_find(struct inject *in);
int cover_mount(struct inject *in); /* 0, or -errno + fault */
void cover_remove(struct inject *in); /* does nothing if @in has none */

/* place.c: the library and the FIFOs in /tmp/kindling/<version>/. */
#define PLACE_IN_TMP "kindling/" KINDLING_VERSION
struct placement {
	enum inject_strategy strategy;
	const char *against_copy; /* "noexec", "full" or NULL */
	int tmp_dfd; /* /tmp as the target sees it, its symbolic links followed */
	int dir_dfd;
	int lock_fd; /* shared: the last attempt in this directory takes the library away */
	int mount_fd; /* root of the tmpfs that the library is on; -1 = none */
	char dir[64]; /* "/tmp/kindling/0.1.0", as the target sees it */
	char library[96], events[64], control[64]; /* names in it */
	int events_fd, control_fd;
};
#define PLACEMENT_NULL                                                                        \
	{                                                                                     \
		.tmp_dfd = -1, .dir_dfd = -1, .lock_fd = -1, .mount_fd = -1, .events_fd = -1, \
		.control_fd = -1                                                              \
	}
/*
 * Finds out what place() would do, without changing anything: the strategy that it tries first, and
 * in @ret_why the obstacle to a copy, NULL if there is none. 0 or -errno + fault.
 */
int place_look(struct inject *in, enum inject_strategy *ret, const char **ret_why);
/* The same, and mounts a tmpfs over /tmp if one is needed. So most refusals come before the JVM is
 * asked for anything. */
int place_begin(struct inject *in, struct placement *p);
int place(struct inject *in, int library_fd, bool quiet, size_t pipe_bytes, struct placement *p);
/* remove.c: removes the names, and the directories if they are empty then. */
void place_remove(const struct inject *in, struct placement *p);
/* Removes what killed attempts on @in may have left, but not what a running attempt needs. */
void place_cleanup(const struct inject *in);

/* attach_hotspot.c: the handshake. @ret_socket is connected and belongs to the target. */
/* For doctor: does .java_pidN belong to somebody else, as which nobody can attach? Connects to see
 * whether anybody listens, and says nothing. 0 or -errno and the fault. */
int attach_check_name(struct inject *in);
bool attach_has_socket(const struct inject *in); /* .java_pidN is there: no signal is needed */
/* Asks the JVM for the socket early, so that other work can be done meanwhile. attach_connect() or
 * attach_abandon() must follow. */
int attach_begin(struct inject *in);
int attach_connect(struct inject *in, int *ret_socket);
void attach_abandon(struct inject *in); /* does nothing if attach_begin() did not ask */
/* after a command: handles a socket whose name has gone meanwhile */
void attach_mend_socket(struct inject *in);
/* checks the target once more and sends SIGQUIT; 0, or -errno + fault */
int attach_send_signal(struct inject *in);

/* attach_command.c: commands over the attach socket. */
#define ATTACH_REQUEST_MAX 65536
/* Connects, sends a command of up to 4 words; the reply (capped, NUL-terminated) goes into @reply.
 */
int attach_command(struct inject *in, const char *const words[4], char *reply, size_t size);
int attach_protocol_for(const char *const words[4]); /* 1 if that protocol is sufficient, else 2 */
int attach_protocol_of(const char *reply); /* the protocol that an answer to `getversion` reports */
/* Writes the bytes of a command. Returns their number, or -E2BIG. */
ssize_t attach_request(int protocol, const char *const words[4], char *buf, size_t size);

/* attach_file.c: .attach_pidN, which tells the JVM that SIGQUIT means "open the socket". */
int attach_file_make(struct inject *in);
bool attach_sigquit_pending(const struct inject *in);
void attach_file_forget(struct inject *in); /* the socket has answered, or no signal was sent */
/* Called when no socket has appeared: waits until the JVM has taken the signal. false = the signal
 * is still pending, and the file stays. */
bool attach_file_give_up(struct inject *in);
/* Is a SIGQUIT pending that belongs to a file in @dir_dfd, left by some attach? Then the file must
 * stay. */
bool attach_file_is_awaited(const struct inject *in, int dir_dfd);
void attach_file_cleanup(struct inject *in); /* removes the file of a killed attempt */

/*
 * listener.c: ends the JVM's attach listener before the directory of its socket is unmounted, so
 * that the JVM is as if it had never been attached to. @dir_dfd: that directory, on a file system
 * of kindling.
 */
void attach_end_listener(struct inject *in, int dir_dfd);

/* reply.c: checks the JVM's answer to `load`. 0, or -errno + fault. Pure. */
int reply_check_load(const char *reply, struct fault *f);
