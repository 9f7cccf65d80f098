/*
 * What a process of ours gives up before it looks at what strangers write: capabilities, its user,
 * and all system calls that it does not need. Each process does that itself, once it has what it
 * needed rights for; nothing brings them back.
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

/* Whom a program becomes: accounts of these names, or these numbers; see RIGHTS_UID. No two have
 * the same: who has another's may send signals to it. */
#define CONFINE_LOOK	"kindling-look", 70708
#define CONFINE_SYMBOLS "kindling-symbols", 70709

/*
 * Of the capabilities those in @keep stay, in no set but the permitted and the effective one, and
 * no program that is executed has more. The bounding set stays as it is where CAP_SETPCAP is not
 * there to change it. 0 or -errno.
 */
int confine_capabilities(uint64_t keep);
/* The same, and root becomes this user, with the other groups of @account if that is not NULL. All threads
 * change their user, the calling one alone keeps a capability. */
int confine_become(uid_t uid, gid_t gid, const char *account, uint64_t keep);
/*
 * The same, and root becomes the account @name of /etc/passwd, where there is none @uid, and in a
 * user namespace that has no such number nobody: without capabilities root would still own the
 * host's files. One of the pairs above.
 */
int confine_user(const char *name, uid_t uid, uint64_t keep);

/* The numbers of system calls that are let through; @otherwise: what becomes of all others,
 * SECCOMP_RET_KILL_PROCESS or SECCOMP_RET_ERRNO | errno. 0 or -errno. After one of the above. */
int confine_calls(const int *calls, size_t n, uint32_t otherwise);
