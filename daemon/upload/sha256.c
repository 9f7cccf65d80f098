/* See sha256.h. */
#include "daemon/upload/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <unistd.h>
#include "daemon/ground/mem.h"

int sha256_of(const void *p, size_t len, uint8_t ret[SHA256_SIZE])
{
	return EVP_Digest(p, len, ret, NULL, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

static void sha256_freep(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
}

int sha256_of_file(int fd, uint64_t len, uint8_t ret[SHA256_SIZE])
{
	CLEANUP(sha256_freep) EVP_MD_CTX *context = EVP_MD_CTX_new();
	off_t at = lseek(fd, 0, SEEK_CUR);
	uint8_t buf[65536];

	if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
		return -ENOMEM;
	while (len) {
		size_t want = len < sizeof(buf) ? (size_t)len : sizeof(buf);

		if (pread(fd, buf, want, at) != (ssize_t)want)
			return -EBADMSG;
		if (EVP_DigestUpdate(context, buf, want) != 1)
			return -ENOMEM;
		at += (off_t)want;
		len -= want;
	}
	return EVP_DigestFinal_ex(context, ret, NULL) == 1 ? 0 : -ENOMEM;
}

int sha256_hmac(const void *key, size_t key_len, const void *p, size_t len,
		uint8_t ret[SHA256_SIZE])
{
	return HMAC(EVP_sha256(), key, (int)key_len, p, len, ret, NULL) ? 0 : -ENOMEM;
}

void sha256_hex(const uint8_t hash[SHA256_SIZE], char ret[2 * SHA256_SIZE + 1])
{
	for (int i = 0; i < SHA256_SIZE; i++)
		snprintf(ret + 2 * i, 3, "%02x", hash[i]);
}
