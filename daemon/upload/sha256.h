/* SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104) by libcrypto, for signing requests. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

/* 0 or -ENOMEM; the latter also if the host's policy for libcrypto forbids SHA-256. */
int sha256_of(const void *p, size_t len, uint8_t ret[SHA256_SIZE]);
/* Hashes @len bytes of @fd from its offset on, and leaves the offset alone. -EBADMSG: there are
 * fewer bytes. */
int sha256_of_file(int fd, uint64_t len, uint8_t ret[SHA256_SIZE]);
/* Keyed hash of @p; @ret and @key may be the same. */
int sha256_hmac(const void *key, size_t key_len, const void *p, size_t len,
		uint8_t ret[SHA256_SIZE]);
/* Lower-case hexadecimal, NUL-terminated. */
void sha256_hex(const uint8_t hash[SHA256_SIZE], char ret[2 * SHA256_SIZE + 1]);
