/* See siphash.h. */
#include "daemon/clickhouse/siphash.h"

#include <endian.h>
#include <string.h>

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t siphash_turned(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void siphash_rounds(struct state *s, unsigned n)
{
	while (n--) {
		s->v0 += s->v1;
		s->v1 = siphash_turned(s->v1, 13) ^ s->v0;
		s->v0 = siphash_turned(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = siphash_turned(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = siphash_turned(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = siphash_turned(s->v1, 17) ^ s->v2;
		s->v2 = siphash_turned(s->v2, 32);
	}
}

static void siphash_word(struct state *s, uint64_t m)
{
	s->v3 ^= m;
	siphash_rounds(s, 2);
	s->v0 ^= m;
}

static uint64_t siphash_word_of(const uint8_t *p, size_t n)
{
	uint64_t m = 0;

	memcpy(&m, p, n);
	return le64toh(m);
}

/* The key is 00 01 02 ... 0f, that of the authors' test vectors. */
uint64_t siphash(const void *data, size_t len)
{
	static const uint64_t k0 = 0x0706050403020100ull, k1 = 0x0f0e0d0c0b0a0908ull;
	struct state s = { k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull,
			   k0 ^ 0x6c7967656e657261ull, k1 ^ 0x7465646279746573ull };
	const uint8_t *p = data;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8)
		siphash_word(&s, siphash_word_of(p, 8));
	siphash_word(&s, siphash_word_of(p, left) | (uint64_t)len << 56);
	s.v2 ^= 0xff;
	siphash_rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
