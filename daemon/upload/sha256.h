/* SHA-256 and HMAC of it (FIPS 180-4, RFC 2104): what signing a request needs, and no more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

struct sha256 {
	uint32_t h[8];
	uint64_t len; /* bytes so far */
	uint8_t block[64];
};

void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t len);
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_SIZE]);
void sha256_hmac(const void *key, size_t key_len, const void *p, size_t len,
		 uint8_t ret[SHA256_SIZE]);
/* Lower-case hexadecimal, NUL-terminated. */
void sha256_hex(const uint8_t hash[SHA256_SIZE], char ret[2 * SHA256_SIZE + 1]);
