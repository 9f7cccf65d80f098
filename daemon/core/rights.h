/*
 * The rights that the data process gives up once everything is open that needs them: it switches to
 * a separate user without capabilities, cannot become another user, and cannot make system calls
 * that such a process never needs (rights_filter.c). docs/security.md lists the rights of each
 * process.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include "daemon/ground/fault.h"

#define RIGHTS_ACCOUNT "kindling"
/* Where there is no account of that name. Above what Debian, Red Hat and systemd give to accounts,
 * below what they give to containers. */
#define RIGHTS_UID 70707
/* Whom kindling-upload becomes: it reads the history as a group, and alone has the spool. */
#define RIGHTS_UPLOAD_ACCOUNT "kindling-upload"
#define RIGHTS_UPLOAD_UID     70710

struct rights {
	uid_t uid;
	gid_t gid;
	char account[64]; /* whose other groups it has too; "" = none */
};

/* Who @account is, which is not root; for the two accounts above there are their numbers. 0 or
 * -errno and @f. */
int rights_find(const char *account, struct rights *ret, struct fault *f);
/*
 * As root: who @account is, as by rights_find(); @dir and all below it become its files, but not
 * @dir/spool. The group of @dir and of the history in it, also of files to come, is that of
 * kindling-upload. Symbolic links are not followed, files with other names are left alone. 0 or
 * -errno and @f.
 */
int rights_prepare(const char *account, const char *dir, struct rights *ret, struct fault *f);
/* As root: creates the directory @path if it is missing, and makes it and everything below it @r's
 * files, as above. 0 or -errno. */
int rights_give(const char *path, const struct rights *r);
/* As root: the directory @name, however deep beneath the directory @top, and what is below it, as
 * above; those between the two stay whose they are. 0; -ELOOP or -EXDEV: a symbolic link is on the
 * way, or it leads elsewhere; -errno. */
int rights_give_beneath(const char *top, const char *name, const struct rights *r);
/* For all threads of this process. @parent: this process ends when that one does. 0, or -errno and
 * @f: the process must not continue. */
int rights_drop(const struct rights *r, pid_t parent, struct fault *f);

/* What is not for the data process gets EPERM; rights_filter.c. 0 or -errno. */
int rights_filter(void);
/* The same for kindling-upload, which has networks and, with @programs, starts programs. */
int rights_filter_upload(bool programs);
