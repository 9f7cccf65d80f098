/* State and functions that the parts of kindling-inject share: one target, and what is known about
 * it. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "daemon/ground/fault.h"
#include "daemon/ground/mem.h"
#include "injector/result.h"

enum runtime { RUNTIME_NONE, RUNTIME_HOTSPOT, RUNTIME_OPENJ9 };

/* ".kindling-<pid>-<16 hexadecimal digits>", including the NUL */
#define PRIVATE_DIR_BYTES 40

/* maps.c: reads /proc/PID/maps. */
struct maps {
	enum runtime runtime;
	uint64_t libjvm; /* address at which libjvm.so begins; 0 = unknown */
	int copies; /* copies of the agent that earlier attaches loaded and that are still mapped */
	/* name of the private directory (private_dir.c) from which one of them came; "" = none */
	char private_dir[PRIVATE_DIR_BYTES];
};

struct vmmemory;

struct inject {
	pid_t pid; /* host pid */
	pid_t ns_pid; /* pid in its innermost namespace, the last of NSpid: N in .java_pidN */
	uint64_t start_time;
	uid_t uid; /* effective, as the host numbers it */
	gid_t gid;
	uid_t ns_root_uid; /* the host's number of uid 0 in the target's user namespace; @uid if
			    * that namespace has no uid 0 */
	gid_t ns_root_gid;
	int pidfd;
	int proc_dfd; /* /proc/PID */
	int root_dfd; /* O_PATH of /proc/PID/root: all paths are resolved in it */
	int mnt_ns_fd; /* its mount namespace; -1 = not open, so nothing can be mounted in it */
	int cgroup_dfd; /* /sys/fs/cgroup; -1 = not there */
	struct maps maps; /* as read by the preflight */
	struct vmmemory *memory; /* vmmemory.c; NULL = not opened yet */
	uint64_t deadline_mono_ns;
	/* command `check`: the target is not changed, and a check that cannot read its facts fails
	 * with -EACCES */
	bool only_checks;
	/* with only_checks: a thread may be stopped to read its seccomp filters */
	bool reads_seccomp;
	bool loads; /* the command loads an agent, which the JVM's owner may forbid */
	char attach_file[32]; /* ".attach_pidN" */
	int attach_dfd; /* directory in which .attach_pidN was made; -1 = it was not made */
	int attach_fd; /* .attach_pidN itself, locked */
	bool may_cover; /* a tmpfs may be laid over its /tmp */
	int cover_fd; /* root of the existing one, locked; -1 = none */
	int covered_fd; /* the directory that the tmpfs covers, or that no tmpfs may cover; locked
			 */
	/* a file could not be removed, because the target is stopped or frozen; a later cleanup
	 * must remove it */
	bool left;
	const char *found; /* text of a check that passed, shown instead of the default one; static;
			    * NULL = none */
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

/* main.c: functions that commands.c uses too. */
#define INJECT_REPLY_MAX (1u << 20)
int inject_open(struct inject *in); /* opens the target's descriptors. 0, or -errno + fault */
int inject_prepare(struct inject *in); /* the same, then the preflight. 0, or -errno + fault */

/* commands.c: kindling-inject as a command for users. Both return an exit status. */
int commands_run(struct inject *in, char **argv); /* @argv: the arguments after the pid */
int commands_help(bool wrong);
/* Prints what is wrong with the arguments to stderr. Returns -1. */
int commands_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* alive.c: is the process of the pidfd still running, with the same start time? */
bool inject_alive(const struct inject *in);

/* maps.c: one pass over /proc/PID/maps. 0 or -errno. */
int maps_read(int proc_dfd, struct maps *ret);

/* options.c: the options that the JVM was started with. Pure. */
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
/* Reads @cmdline and @environ in the order in which the JVM does; later options win. */
void options_read(struct options *o, const char *cmdline, size_t cmdline_len, const char *environ,
		  size_t environ_len);

/* cgroup.c: has the cgroup room for the agent's threads and memory, and is it not frozen? 0 or
 * -EAGAIN + fault. */
int cgroup_check(struct inject *in);
bool cgroup_is_frozen(const struct inject *in);

/* jdk.c: checks for known bugs of the target's JDK. 0 or -errno + fault. */
int jdk_check(struct inject *in);
/* Can this JVM create a new socket after the name of its first one is gone? false = no, or
 * unknown. */
bool jdk_makes_sockets_again(struct inject *in);
/* Does the JVM listen on a socket whose name is gone? */
bool jdk_lost_its_socket(const struct inject *in);
/* The inode of the socket on which the JVM with the number @ns_pid listens, from a line of
 * /proc/PID/net/unix; 0 = the line is about another socket. Pure. */
uint64_t jdk_socket_inode(const char *line, int ns_pid);

/* copies.c: are fewer than COPIES_MAX copies of the agent mapped? 0 or -ENOSPC + fault. */
#define COPIES_MAX 64
int copies_check(struct inject *in);
bool copies_is_one(const char *line); /* Is this line of /proc/PID/maps the code of a copy? Pure. */

/* offered_events.c: which events the JVM can provide, for `check`. 0, or -errno + fault: unknown. */
int events_check(struct inject *in);

/* nproc.c: may the target's user start the agent's threads (RLIMIT_NPROC)? 0 or -EAGAIN + fault. */
int nproc_check(struct inject *in);

/* preflight.c: all checks that may refuse the attach before the target is touched. 0 or -errno +
 * fault. */
int preflight(struct inject *in);
struct check {
	const char *name;
	int (*run)(struct inject *in); /* 0, or -errno + fault */
	const char *ok; /* text if the check passes */
	const char *change; /* text if it fails: what the user can change */
	const char *needs; /* text if it cannot be made: what it needs; NULL = more rights */
};
extern const struct check preflight_checks[]; /* in the order in which they run */
extern const size_t preflight_check_count;
int preflight_identity(struct inject *in); /* identity, ids and state of the process; a cleanup
					    * needs it too */

/* check.c: runs all checks of the preflight, even after one has failed, and prints a line (JSON: an
 * object) for each to stdout. Returns 0 = all passed, 1 = at least one failed, 2 = none failed, but
 * at least one could not be made. */
int check_all(struct inject *in, bool json);
void check_report_unopened(bool json, const char *name, const struct fault *f);

/* files.c: openat2 in the target's root, with the ids of the target or of its root. */
int files_as_target(const struct inject *in); /* sets fsuid and fsgid; 0 or -errno */
int files_as_ns_root(const struct inject *in);
void files_as_root(void);
int files_open(int dfd, const char *path, int flags, mode_t mode);
/*
 * Opens @name in @dfd with the current fsuid and fsgid, but only after checking that it is of @type
 * (S_IFREG, S_IFIFO) and belongs to @uid (FILES_ANY = to anyone): the target may have put anything
 * there, and merely opening some devices has effects. Returns an fd, or -errno; -EPROTO = it has
 * another type or owner.
 */
#define FILES_ANY ((uid_t)-1)
int files_open_seen(int dfd, const char *name, int flags, mode_t type, uid_t uid);
/* /tmp of the target, O_PATH; if it is a symbolic link, its destination inside the root. */
int files_open_tmp(const struct inject *in);
/* Is it owned by the target or its root, and can no one else rename entries in it? */
bool files_is_private(const struct inject *in, int fd, struct stat *ret);

/*
 * names.c: the names in a directory that others may have filled: as many as can be read in 0.3 s,
 * and in 1.5 s in all directories since names_begin().
 */
struct names {
	DIR *dir; /* NULL = it cannot be read */
	unsigned seen;
	uint64_t until_mono_ns;
};
void names_begin(void);
void names_open(struct names *n, int dfd);
const char *names_next(struct names *n); /* valid until the next call; NULL = no more */
void names_close(struct names *n);

/* library.c: the agent's library, and a trustworthy copy of it. */
struct library {
	uint8_t *bytes;
	size_t len;
	uint64_t hash; /* hash of the content, which is part of the copy's name */
};
int library_read(int fd, struct library *ret);
/* Makes @name in @dfd a file with the library's content, replacing any existing file, with the
 * current fsuid and fsgid. 0 or -errno. */
int library_write(int dfd, const char *name, const struct library *l);

/* mount.c: the library on a separate tmpfs. All return 0 or -errno. */
#define MOUNT_SOURCE "kindling" /* the mount's source, which mount(8) prints first */
/* makes a detached, read-only mount. *ret: its descriptor, owned by the caller */
int mount_make(const struct library *l, const char *name, int *ret);
int mount_attach(const struct inject *in, int mount_fd, int dir_fd);
/* @mount_fd: descriptor of the mount's root */
int mount_detach(const struct inject *in, int mount_fd);
/* makes a detached mount in which every user may write */
int mount_make_cover(size_t bytes, unsigned files, int *ret);
bool mount_is_ours(int dfd);

/*
 * cover.c: a tmpfs over the target's /tmp during an attach, for a JVM that cannot write to its /tmp
 * and therefore cannot create its attach socket. Only if the settings allow it: during that time
 * the container's own /tmp is hidden, and others may write to the tmpfs.
 */
/* Waits until the tmpfs of another running attempt is gone. If a killed attempt left a tmpfs, @in
 * takes it over. 1 = taken over, 0 = there is none, or -errno + fault. */
int cover_find(struct inject *in);
/* The same, and no other attempt covers /tmp before cover_end(). */
int cover_begin(struct inject *in);
int cover_mount(struct inject *in); /* 0, or -errno + fault */
void cover_end(struct inject *in); /* removes the tmpfs, if @in has one */

/* place.c: the library and the FIFOs in /tmp/kindling/<version>/, or in
 * /tmp/<private directory>/kindling/<version>/. */
#define PLACE_IN_TMP "kindling/" KINDLING_VERSION
struct placement {
	enum inject_strategy strategy;
	const char *against_copy; /* "noexec", "full" or NULL */
	int tmp_dfd; /* /tmp as the target sees it, its symbolic links followed; or the private
		      * directory in it */
	int outer_dfd; /* /tmp, if @tmp_dfd is a private directory; else -1 */
	char private_dir[PRIVATE_DIR_BYTES]; /* its name; "" = none */
	int dir_dfd;
	int lock_fd; /* holds a shared lock: the last attempt that uses the directory removes the
		      * library */
	int mount_fd; /* root of the tmpfs that the library is on; -1 = none */
	char dir[96]; /* "/tmp/kindling/0.1.0", as the target sees it */
	char library[96], events[64], control[64]; /* names in @dir */
	int events_fd, control_fd;
};
#define PLACEMENT_NULL                                                                        \
	{                                                                                     \
		.tmp_dfd = -1, .outer_dfd = -1, .dir_dfd = -1, .lock_fd = -1, .mount_fd = -1, \
		.events_fd = -1, .control_fd = -1                                             \
	}
/*
 * Finds out what place() would do, without changing anything: the strategy that it tries first, and
 * in @ret_why the obstacle to a copy, NULL if there is none. 0 or -errno + fault.
 */
int place_plan(struct inject *in, enum inject_strategy *ret, const char **ret_why);
/* The same, and mounts a tmpfs over /tmp if one is needed. It runs before the JVM gets SIGQUIT, so
 * most refusals do not touch the JVM. 0 or -errno + fault. */
int place_begin(struct inject *in, struct placement *p);
int place(struct inject *in, int library_fd, bool quiet, size_t pipe_bytes, struct placement *p);
/* remove.c: removes the names, and then the directories that are empty. */
void place_remove(const struct inject *in, struct placement *p);
/* Removes files and mounts that killed attempts on @in may have left, but none that a running
 * attempt needs. */
void place_cleanup(const struct inject *in);
/* The same in @tmp_dfd, which is /tmp or a private directory. */
void place_cleanup_in(const struct inject *in, int tmp_dfd);

/*
 * private_dir.c: a directory in /tmp for one attempt, used if /tmp/kindling is not usable because
 * of another user. It belongs to the target, and only the target may enter it.
 */
/* Can nobody else rename what is created in /tmp? Not in one that all may write and that is not
 * sticky. */
bool private_dir_is_safe(const struct inject *in, int tmp_dfd);
/* Creates one in @p->tmp_dfd, which becomes @p->outer_dfd, as the target. 0 or -errno, and @p
 * unchanged. */
int private_dir_enter(const struct inject *in, struct placement *p);
/* Removes it if it is empty, and undoes the change of @p; does nothing if @p has none. */
void private_dir_leave(const struct inject *in, struct placement *p);
/* Removes those that killed attempts on @in have left. */
void private_dir_cleanup(const struct inject *in);
/* Copies the name of a private directory from @path, its name or the path of a file in it. false =
 * there is none, and @ret is unchanged. Pure. */
bool private_dir_name(const char *path, char ret[PRIVATE_DIR_BYTES]);

/* attach_hotspot.c: the handshake. Functions return 0 or -errno + fault. @ret_socket: connected to
 * the target; owned by the caller. */
/* For `check` only: does another user's file or socket occupy the name .java_pidN, so that an
 * attach would fail? Connects to find out whether a process listens, and sends nothing. */
int attach_check_name(struct inject *in);
bool attach_has_socket(const struct inject *in); /* .java_pidN exists: no signal is needed */
/* Asks the JVM for the socket early, so that other work can be done meanwhile. attach_connect() or
 * attach_abandon() must follow. */
int attach_begin(struct inject *in);
int attach_connect(struct inject *in, int *ret_socket);
void attach_abandon(struct inject *in); /* waits for the socket and closes it; does nothing if no
					 * request is pending */
/* after a command: has the JVM create a new socket if the name of the old one is gone */
void attach_restore_socket(struct inject *in);
/* checks the target once more and sends SIGQUIT; 0, or -errno + fault */
int attach_send_signal(struct inject *in);

/* starting.c: waits up to a second for the thread that handles SIGQUIT. 0, or -errno + fault:
 * -EAGAIN = the JVM is still starting. */
int starting_wait(struct inject *in);
/* Has the thread that handles SIGQUIT nothing to do? Also true if it cannot be told. */
bool starting_signals_are_handled(const struct inject *in);

/* attach_command.c: commands over the attach socket. */
#define ATTACH_REQUEST_MAX 65536
/* Connects and sends a command of up to 4 words. @reply: the answer, cut to @size and
 * NUL-terminated. 0 or -errno + fault. */
int attach_command(struct inject *in, const char *const words[4], char *reply, size_t size);
int attach_protocol_for(const char *const words[4]); /* 1 if that protocol is sufficient, else 2 */
int attach_protocol_of(const char *reply); /* the protocol that an answer to `getversion` reports */
/* Writes the bytes of a command. Returns their number, or -E2BIG. */
ssize_t attach_request(int protocol, const char *const words[4], char *buf, size_t size);

/* attach_file.c: .attach_pidN, the file that makes the JVM take SIGQUIT as a request to open its
 * attach socket. */
int attach_file_make(struct inject *in);
bool attach_sigquit_pending(const struct inject *in);
void attach_file_forget(struct inject *in); /* removes it: the socket has answered, or no signal was
					     * sent */
/* Called when no socket has appeared: waits until the JVM has handled the signal, then removes the
 * file. false = the signal is still pending, or the JVM is stopped, and the file stays. */
bool attach_file_give_up(struct inject *in);
/* May a JVM still look for one of the .attach_pidN files in @dir_dfd, because a SIGQUIT is pending
 * or it is stopped? Then these files must stay. */
bool attach_file_is_awaited(const struct inject *in, int dir_dfd);
void attach_file_cleanup(struct inject *in); /* removes the file of a killed attempt, or sets
					      * in->left */

/*
 * listener.c: ends the JVM's attach listener before the directory of its socket is unmounted, which
 * restores the state before the first attach. @dir_dfd: that directory, on a tmpfs of kindling.
 */
void attach_end_listener(struct inject *in, int dir_dfd);

/* reply.c: checks the JVM's answer to `load`. 0, or -errno + fault. Pure. */
int reply_check_load(const char *reply, struct fault *f);
