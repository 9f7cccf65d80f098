/* See rights.h. */
#include "daemon/core/rights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "daemon/ground/confine.h"
#include "daemon/ground/mem.h"

#define DEPTH_MAX 4 /* of directories in state_dir */

/* ---- files ----------------------------------------------------------------------------------- */

/* May it be given to the account? A file with a second name (hard link) may be another user's file:
 * the previous owner of the directory, who need not be root, can have linked it there. */
static bool rights_may_give(const struct stat *st)
{
	return S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && st->st_nlink == 1);
}

static int rights_give_one(int dfd, const char *name, const struct rights *r, struct stat *ret)
{
	if (fstatat(dfd, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!rights_may_give(ret) || (ret->st_uid == r->uid && ret->st_gid == r->gid))
		return 0;
	return fchownat(dfd, name, r->uid, r->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Is it a directory that does not become the account's here? Of those in the state directory only
 * symbols does: rights_give_history() handles segments, kindling-upload the spool, and any other
 * belongs to a sink. */
static bool rights_is_separate(int dfd, const char *name, int depth)
{
	struct stat st;

	return depth == 1 && strcmp(name, "symbols") != 0 &&
	       fstatat(dfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Gives everything below the directory @dfd, which it closes, to the account. */
static int rights_give_below(int dfd, const struct rights *r, int depth)
{
	DIR *dir = fdopendir(dfd);
	const struct dirent *e;
	struct stat st;
	int result = 0, below;

	if (!dir) {
		close(dfd);
		return -errno;
	}
	while (result == 0 && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    rights_is_separate(dirfd(dir), e->d_name, depth))
			continue;
		result = rights_give_one(dirfd(dir), e->d_name, r, &st);
		if (result == -ENOENT) /* the store's worker may have removed it just now */
			result = 0;
		else if (result == 0 && S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			below = openat(dirfd(dir), e->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			result = below < 0 ? -errno : rights_give_below(below, r, depth + 1);
		}
	}
	closedir(dir);
	return result;
}

/* Gives the directory @dfd, which it closes, and adds @mode to its mode. @depth: as for
 * rights_give_below(), which handles what is below it; 0 = nothing below it is given. */
static int rights_give_fd(int dfd, const struct rights *r, mode_t mode, int depth)
{
	CLEANUP(fd_closep) int fd = dfd;
	struct stat st;

	if (fchown(fd, r->uid, r->gid) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & mode) != mode && fchmod(fd, (st.st_mode & 07777) | mode) < 0)
		return -errno;
	return depth ? rights_give_below(TAKE_FD(fd), r, depth) : 0;
}

static int rights_give_to(const char *path, const struct rights *r, mode_t mode, int depth)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : rights_give_fd(fd, r, mode, depth);
}

int rights_give(const char *path, const struct rights *r)
{
	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return -errno;
	return rights_give_to(path, r, 0, 2);
}

int rights_give_beneath(const char *top, const char *name, const struct rights *r)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	CLEANUP(fd_closep) int dfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = dfd < 0 ? -1 : (int)syscall(SYS_openat2, dfd, name, &how, sizeof(how));

	return fd < 0 ? -errno : rights_give_fd(fd, r, 0, 2);
}

/* Lets kindling-upload, by the group @reader, pass through @dir and read the history in it. */
static int rights_give_history(const char *dir, const struct rights *r, gid_t reader)
{
	const struct rights shared = { .uid = r->uid, .gid = reader };
	char path[300];
	int result = rights_give_to(dir, &shared, S_IXGRP, 0);

	snprintf(path, sizeof(path), "%s/segments", dir);
	if (result == 0)
		result = rights_give_to(path, &shared, S_ISGID | S_IRGRP | S_IXGRP, 2);
	return result == -ENOENT ? 0 : result;
}

int rights_share_history(const char *dir, const struct rights *reader)
{
	struct rights owner = { 0 };
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/segments", dir);
	if (lstat(path, &st) < 0)
		return -errno;
	owner.uid = st.st_uid;
	return S_ISDIR(st.st_mode) ? rights_give_history(dir, &owner, reader->gid) : -ENOTDIR;
}

static int rights_give_state(const char *dir, const struct rights *r, gid_t reader)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = fd < 0 ? -errno : rights_give_below(fd, r, 1);

	return result < 0 ? result : rights_give_history(dir, r, reader);
}

int rights_find(const char *account, struct rights *ret, struct fault *f)
{
	const struct passwd *p = getpwnam(account);
	uid_t uid = strcmp(account, RIGHTS_UPLOAD_ACCOUNT) == 0 ? RIGHTS_UPLOAD_UID : RIGHTS_UID;

	if (!p && uid == RIGHTS_UID && strcmp(account, RIGHTS_ACCOUNT) != 0)
		return fault_set(f, ENOENT, FAULT_INTERNAL, "user: there is no account named %.60s",
				 account);
	*ret = (struct rights){ .uid = uid, .gid = uid };
	if (p) {
		*ret = (struct rights){ .uid = p->pw_uid, .gid = p->pw_gid };
		snprintf(ret->account, sizeof(ret->account), "%s", account);
	}
	return 0;
}

int rights_prepare(const char *account, const char *dir, struct rights *ret, struct fault *f)
{
	struct rights upload = { 0 };
	int r = rights_find(account, ret, f);

	if (r == 0)
		r = rights_find(RIGHTS_UPLOAD_ACCOUNT, &upload, f);
	if (r < 0)
		return r;
	r = rights_give_state(dir, ret, upload.gid);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL,
				 "give %.120s to uid %u (`user` in the settings): ", dir,
				 (unsigned)ret->uid)
		     : 0;
}

/* ---- capabilities ---------------------------------------------------------------------------- */

/* Before Linux 5.19 every call of bpf(2) needs CAP_BPF, even for a map that is open already. */
static bool rights_needs_bpf(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major < 5 || (major == 5 && minor < 19);
}

static bool rights_sees_others(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return access(path, R_OK) == 0;
}

int rights_drop(const struct rights *r, pid_t parent, struct fault *f)
{
	int result = confine_become(r->uid, r->gid, r->account[0] ? r->account : NULL,
				    rights_needs_bpf() ? CONFINE_CAP(BPF) : 0);

	if (result < 0)
		return fault_set(f, -result, FAULT_INTERNAL,
				 "become uid %u (`user: root` keeps all rights, in one process): ",
				 (unsigned)r->uid);
	/* a change of the user clears this, prctl(2) */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		return fault_set(f, ESRCH, FAULT_INTERNAL, "kindlingd is ending");
	if (!rights_sees_others(parent))
		return fault_set(
			f, EACCES, FAULT_INTERNAL,
			"uid %u cannot see processes of other users, because /proc is mounted "
			"with hidepid; make it a member of the group in the mount option gid=, or "
			"set `user: root`",
			(unsigned)r->uid);
	result = rights_filter();
	return result < 0 ? fault_set(f, -result, FAULT_INTERNAL, "set a seccomp filter: ") : 0;
}
