/*
 * Takes rights from the calling process before it reads data of strangers: capabilities, the root
 * user, and system calls that it does not need. Each process of kindling does that itself as soon
 * as it has used its rights; they cannot be regained.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Builds with a sanitizer have no filter, because it may make any system call at any time. */
#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_SANITIZED true
#endif
#endif
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED false
#endif

#define CONFINE_CAP(name) (1ull << CAP_##name)
#define CONFINE_NOBODY	  65534

/* The account that each program switches to, by these names or numbers; see RIGHTS_UID. No two
 * programs share one: processes of one account can signal each other. */
#define CONFINE_LOOK	"kindling-look", 70708
#define CONFINE_SYMBOLS "kindling-symbols", 70709
#define CONFINE_NAMES	"kindling-names", 70711

/*
 * Keeps only the capabilities in @keep, in the permitted and the effective set; no program that is
 * executed gets more. The bounding set is not changed if CAP_SETPCAP is missing. 0 or -errno.
 */
int confine_capabilities(uint64_t keep);
/* The same, and the process becomes this user and group, with the supplementary groups of @account
 * unless that is NULL. All threads change their user, but only the calling one keeps @keep. */
int confine_become(uid_t uid, gid_t gid, const char *account, uint64_t keep);
/*
 * The same, and root switches to the account @name of /etc/passwd, or to @uid if there is no such
 * account, or to nobody in a user namespace without that number: even without capabilities root
 * would still own the host's files. @name and @uid: one of the pairs above.
 */
int confine_user(const char *name, uid_t uid, uint64_t keep);

/* Allows only these system calls, @n numbers. @otherwise: the action for all others,
 * SECCOMP_RET_KILL_PROCESS or SECCOMP_RET_ERRNO | errno. To be called after one of the above, which
 * sets no_new_privs. 0 or -errno. */
int confine_calls(const int *calls, size_t n, uint32_t otherwise);
