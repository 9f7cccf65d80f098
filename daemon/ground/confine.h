/*
 * Drops what a process of kindling does not need before it reads strangers' data: capabilities, its
 * user, and all unneeded system calls. Each process does that itself once it has used its rights;
 * they cannot be regained.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A sanitizer maps memory, starts threads and more, at any time: its processes have no filter. */
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
/* The same, and root becomes this user, with the other groups of @account if that is not NULL. All
 * threads change their user, the calling one alone keeps a capability. */
int confine_become(uid_t uid, gid_t gid, const char *account, uint64_t keep);
/*
 * The same, and root switches to the account @name of /etc/passwd, or to @uid if there is no such
 * account, or to nobody in a user namespace without that number: even without capabilities root
 * would still own the host's files. @name and @uid: one of the pairs above.
 */
int confine_user(const char *name, uid_t uid, uint64_t keep);

/* The numbers of system calls that are let through; @otherwise: what becomes of all others,
 * SECCOMP_RET_KILL_PROCESS or SECCOMP_RET_ERRNO | errno. 0 or -errno. After one of the above. */
int confine_calls(const int *calls, size_t n, uint32_t otherwise);
