/*
 * The data process gives up its rights as soon as everything that needs them is open: it becomes a
 * separate user without capabilities, cannot become another user, and cannot make system calls that
 * it never needs (rights_filter.c). docs/security.md lists the rights of each process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "daemon/ground/fault.h"

#define RIGHTS_ACCOUNT "kindling"
/* Used if there is no account of that name. Debian, Red Hat and systemd give accounts smaller
 * numbers, and containers larger ones. */
#define RIGHTS_UID 70707
/* The account of kindling-upload: it may read the history by its group, and alone has the spool. */
#define RIGHTS_UPLOAD_ACCOUNT "kindling-upload"
#define RIGHTS_UPLOAD_UID     70710

struct rights {
	uid_t uid;
	gid_t gid;
	char account[64]; /* its supplementary groups are set as well; "" = none */
};

/* Finds the uid and gid of @account, which is not "root". The two accounts above need not exist:
 * then their numbers are used. 0, or -errno and @f. */
int rights_find(const char *account, struct rights *ret, struct fault *f);
/*
 * As root: finds @account as rights_find() does, and makes the state directory @dir and its files
 * the account's, except directories other than symbols and segments. The group of @dir and of the
 * history in it, also of later files, becomes that of kindling-upload. Symbolic links are not
 * followed, and files with more than one hard link are left alone. 0, or -errno and @f.
 */
int rights_prepare(const char *account, const char *dir, struct rights *ret, struct fault *f);
/* As root: creates the directory @path if it is missing, and gives it and everything below it to
 * @r; links as above. 0 or -errno. */
int rights_give(const char *path, const struct rights *r);
/* As root: gives the directory @name, a path beneath the directory @top, and everything below it to
 * @r; directories between the two keep their owners. 0; -ELOOP: there is a symbolic link on the
 * way; -EXDEV: @name leaves @top; or another -errno. */
int rights_give_beneath(const char *top, const char *name, const struct rights *r);
/* As root: gives the history in the state directory @dir to the group of @reader, whatever account
 * it belongs to; links as above. 0; -ENOENT: there is none; or another -errno. */
int rights_share_history(const char *dir, const struct rights *reader);
/* Gives up the rights of all threads of this process, which then ends when @parent ends. 0, or
 * -errno and @f: the process must not continue. */
int rights_drop(const struct rights *r, pid_t parent, struct fault *f);

/* From now on system calls that the data process never needs fail with EPERM. 0 or -errno. */
int rights_filter(void);
/* The same for kindling-upload, which may use the network and, with @programs, start programs. */
int rights_filter_upload(bool programs);
