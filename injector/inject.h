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
	uint64_t libjvm; /* where libjvm.so begins; 0 = not known */
	int copies; /* of the agent, of earlier attaches */
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
	bool looks; /* --check: nothing is done to it, and what cannot be seen is said */
	bool reads_seccomp; /* with looks: a thread may be stopped to read its filter */
	bool loads; /* an agent is to be loaded: the owner may forbid that alone */
	char attach_file[32]; /* ".attach_pidN" */
	int attach_dfd; /* where it was made; -1 = it was not */
	int attach_fd; /* the file itself, locked */
	bool may_cover; /* a tmpfs may be laid over its /tmp */
	int cover_fd; /* root of the existing one, locked; -1 = none */
	int covered_fd; /* what it was laid over, locked */
	bool left; /* something had to stay, because it stands still: to be taken away later */
	const char *found; /* what a check saw that is no reason to refuse; NULL = nothing */
	struct fault *fault;
};

#define INJECT_NULL                                                                             \
	{                                                                                       \
		.pidfd = -1, .proc_dfd = -1, .root_dfd = -1, .cgroup_dfd = -1, .mnt_ns_fd = -1, \
		.attach_dfd = -1, .attach_fd = -1, .cover_fd = -1, .covered_fd = -1             \
	}

int inject_remaining_ms(const struct inject *in); /* until the deadline; 0 = it has passed */
void inject_pause_ms(int ms);
void inject_pause_us(int us);

/* main.c: the parts that commands.c needs too. */
#define INJECT_REPLY_MAX (1u << 20)
int inject_open(struct inject *in); /* its descriptors. 0, or -errno + fault */
int inject_prepare(struct inject *in); /* the same, and the preflight */

/* commands.c: kindling-inject by hand. Exit statuses. */
int commands_run(struct inject *in, char **argv); /* @argv: the arguments after the pid */
int commands_help(bool wrong);
/* What is wrong with the words, to stderr. Returns -1. */
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
/* Looks for an option in a command line or environment list (NUL-separated); the last one wins:
 * 1 = "-XX:+Name", 0 = "-XX:-Name", -1 = not there. */
int options_flag(const char *list, size_t len, const char *name);
/* Read @cmdline and @environ as the JVM does: what comes later in its own order wins. */
void options_read(struct options *o, const char *cmdline, size_t cmdline_len, const char *environ,
		  size_t environ_len);

/* cgroup.c: room for our threads and our memory, and not frozen. 0 or -EAGAIN + fault. */
int cgroup_check(struct inject *in);
bool cgroup_is_frozen(const struct inject *in);

/* jdk.c: bugs of this very JDK. 0 or -errno + fault. */
int jdk_check(struct inject *in);
bool jdk_makes_sockets_again(struct inject *in); /* false = no, or not known */
bool jdk_lost_its_socket(const struct inject *in); /* it listens, but the name is gone */
/* The socket that a JVM numbered @ns_pid listens on, from a line of /proc/PID/net/unix; 0 = another
 * one. Pure. */
uint64_t jdk_socket_inode(const char *line, int ns_pid);

/* copies.c: no more of them than this. 0 or -ENOSPC + fault. */
#define COPIES_MAX 64
int copies_check(struct inject *in);
bool copies_is_one(const char *line); /* of /proc/PID/maps: the code of one. Pure. */

/* events.c: which events the JVM would give, for `check`. 0, or -errno + fault: unknown. */
int events_check(struct inject *in);

/* nproc.c: room for our threads in RLIMIT_NPROC. 0 or -EAGAIN + fault. */
int nproc_check(struct inject *in);

/* preflight.c: everything that may say no before the target is touched. 0 or -errno + fault. */
int preflight(struct inject *in);
struct check {
	const char *name;
	int (*run)(struct inject *in); /* 0, or -errno + fault */
	const char *ok; /* what a yes means */
	const char *change; /* what would change a no */
	const char *tell; /* what is needed to find out; NULL = root */
};
extern const struct check preflight_checks[]; /* in the order in which they are asked */
extern const size_t preflight_check_count;
int preflight_identity(struct inject *in); /* the part that cleaning up needs too */

/* check.c: the preflight for a person: it makes all checks, even after one has failed. One line
 * (JSON: one object) each on stdout; 0, 1 = a check has failed, 2 = none has, but one could not be
 * made. */
int check_all(struct inject *in, bool json);
void check_say_unseen(bool json, const char *name, const struct fault *f);

/* files.c: openat2 in the target's root, with the ids of the target or of its root. */
int files_as_target(const struct inject *in); /* fsuid, fsgid; 0 or -errno */
int files_as_keeper(const struct inject *in);
void files_as_root(void);
int files_open(int dfd, const char *path, int flags, mode_t mode);
/*
 * Open what lies in @dfd as @name, with the ids the caller took on, once it has been seen to be of
 * @type (S_IFREG, S_IFIFO) and to belong to @uid; FILES_ANY = to anybody. It is the target's to
 * choose, and a device does things as soon as it is opened. An fd, or -errno; -EPROTO = it is
 * something else.
 */
#define FILES_ANY ((uid_t)-1)
int files_open_seen(int dfd, const char *name, int flags, mode_t type, uid_t uid);
/* /tmp of the target, O_PATH; if it is a symbolic link, its destination inside the root. */
int files_open_tmp(const struct inject *in);
/* Is it owned by the target or its root, and can no one else rename entries in it? */
bool files_is_private(const struct inject *in, int fd, struct stat *ret);

/* library.c: the agent's library, and a copy of it that can be trusted. */
struct library {
	uint8_t *bytes;
	size_t len;
	uint64_t hash; /* of the bytes, in the copy's name */
};
int library_read(int fd, struct library *ret);
/* Make @name in @dfd the same bytes, whatever is there now; with the ids the caller took on. */
int library_write(int dfd, const char *name, const struct library *l);

/* mount.c: the library on a separate tmpfs. All return 0 or -errno. */
#define MOUNT_SOURCE "kindling" /* in the first word of mount(8)'s lines */
int mount_make(const struct library *l, const char *name, int *ret); /* detached and read-only */
int mount_attach(const struct inject *in, int mount_fd, int dir_fd);
int mount_detach(const struct inject *in, int mount_fd); /* @mount_fd: of its root */
int mount_make_cover(size_t bytes, unsigned files, int *ret); /* detached, for all to write */
bool mount_is_ours(int dfd);

/*
 * cover.c: a tmpfs over the target's /tmp for the moment of an attach. A JVM that may write nowhere
 * in /tmp cannot make its attach socket. Only where that was asked for: for that moment the
 * container's own /tmp cannot be seen, and can be written to.
 */
/* Waits until the tmpfs of another attempt is gone; one that a killed attempt left becomes @in's. 1
 * = it did, 0 = there is none, or -errno + fault. */
int cover_find(struct inject *in);
int cover_mount(struct inject *in); /* 0, or -errno + fault */
void cover_remove(struct inject *in); /* nothing where none is @in's */

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
 * What place() would do, without touching anything: the strategy that it tries first, and in
 * @ret_why what is against a copy, NULL where nothing is. 0 or -errno + fault.
 */
int place_look(struct inject *in, enum inject_strategy *ret, const char **ret_why);
/* Looks in the same way, and lays a tmpfs over /tmp where one is needed: whoever refuses has mostly
 * done so before the JVM is asked for anything. */
int place_begin(struct inject *in, struct placement *p);
int place(struct inject *in, int library_fd, bool quiet, size_t pipe_bytes, struct placement *p);
/* remove.c: remove names; also the directories when nothing else is in them. */
void place_remove(const struct inject *in, struct placement *p);
/* Remove what killed attempts on @in may have left, not what one that runs needs. */
void place_cleanup(const struct inject *in);

/* attach_hotspot.c: the handshake. @ret_socket is connected and belongs to the target. */
/* For doctor: does .java_pidN belong to somebody else, as which nobody can attach? Connects to see
 * whether anybody listens, and says nothing. 0 or -errno and the fault. */
int attach_check_name(struct inject *in);
bool attach_has_socket(const struct inject *in); /* .java_pidN is there: no signal is needed */
/* Ask for the socket already, to do something else while the JVM makes it; attach_connect() or
 * attach_abandon() has to follow. */
int attach_begin(struct inject *in);
int attach_connect(struct inject *in, int *ret_socket);
void attach_abandon(struct inject *in); /* nothing where attach_begin() asked for nothing */
void attach_mend_socket(struct inject *in); /* after a command: its name may have gone meanwhile */
int attach_send_signal(struct inject *in); /* SIGQUIT, looked at once more; 0, or -errno + fault */

/* attach_command.c: what is said over it. */
#define ATTACH_REQUEST_MAX 65536
/* Connects, sends a command of up to 4 words; the reply (capped, NUL-terminated) goes into @reply.
 */
int attach_command(struct inject *in, const char *const words[4], char *reply, size_t size);
int attach_protocol_for(const char *const words[4]); /* 1 where that will do, else 2 */
int attach_protocol_of(const char *reply); /* what an answer to `getversion` says */
/* The bytes of a command; their number, or -E2BIG. */
ssize_t attach_request(int protocol, const char *const words[4], char *buf, size_t size);

/* attach_file.c: .attach_pidN, which tells the JVM that SIGQUIT means "open the socket". */
int attach_file_make(struct inject *in);
bool attach_sigquit_pending(const struct inject *in);
void attach_file_forget(struct inject *in); /* the socket has answered, or no signal was sent */
/* No socket came: waits until the signal has been taken. false = it is still pending, the file
 * stays. */
bool attach_file_give_up(struct inject *in);
/* Some attach left one in @dir_dfd, and SIGQUIT is on its way: it must not go yet. */
bool attach_file_is_awaited(const struct inject *in, int dir_dfd);
void attach_file_cleanup(struct inject *in); /* of a killed attempt */

/*
 * listener.c: ends the JVM's attach listener before the directory of its socket is unmounted, so
 * that the JVM is as if never attached to. @dir_dfd: that directory, on a file system of kindling.
 */
void attach_end_listener(struct inject *in, int dir_dfd);

/* reply.c: 0, or -errno + fault for what the JVM answered to `load`. Pure. */
int reply_check_load(const char *reply, struct fault *f);
