/*
 * The users to whom uids are delegated in /etc/subuid, subuid(5). The processes in a user's
 * rootless containers have such uids: some 65,536 that one user can take as they like. Loaded and
 * asked by the loop's thread only.
 */
#pragma once

#include <stdint.h>

#define SUBUIDS_MAX	  4096 /* ranges; the excess is ignored */
#define SUBUIDS_FILE_SIZE (1u << 20) /* bytes of each file; the excess is ignored */

#define SUBUIDS_FILE   "/etc/subuid"
#define SUBUIDS_PASSWD "/etc/passwd"

/*
 * Reads the ranges in @file, and the uids of the names in it in @passwd; they replace those of the
 * last call. The ranges of a name that is not in @passwd belong to nobody else than themselves:
 * each is taken for a user with its first uid. Returns the number of ranges, 0 if @file does not
 * exist, or -errno, and the ranges of the last call stay.
 */
int subuids_load(const char *file, const char *passwd);
/* The user to whom @uid is delegated, else @uid. */
uint32_t subuids_owner(uint32_t uid);
