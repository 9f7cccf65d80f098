/* See config_value.h. */
#include "daemon/core/config_value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/clock.h"
#include "daemon/core/mem.h"

struct unit {
	const char *name;
	uint64_t size;
};

/* ascending, so that the last one that divides is the largest */
static const struct unit durations[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", NS_PER_MS },
	{ "s", NS_PER_S },
	{ "m", 60 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
	{ "d", 24 * 3600 * NS_PER_S },
};
static const struct unit sizes[] = {
	{ "B", 1 },
	{ "KiB", 1ull << 10 },
	{ "MiB", 1ull << 20 },
	{ "GiB", 1ull << 30 },
	{ "TiB", 1ull << 40 },
};

/* Digits at *text, which is moved past them. */
static int whole_number(const char **text, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = *text;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	*text = p;
	*ret = value;
	return 0;
}

static int number_with_unit(const char *text, const struct unit *units, size_t n_units,
			    uint64_t *ret)
{
	uint64_t value;
	int r;

	r = whole_number(&text, &value);
	if (r < 0)
		return r;
	while (*text == ' ')
		text++;
	for (size_t i = 0; i < n_units; i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].size, &value))
			return -ERANGE;
		*ret = value;
		return 0;
	}
	return -EINVAL;
}

int value_duration_ns(const char *text, uint64_t *ret)
{
	return number_with_unit(text, durations, ARRAY_SIZE(durations), ret);
}

int value_bytes(const char *text, uint64_t *ret)
{
	return number_with_unit(text, sizes, ARRAY_SIZE(sizes), ret);
}

int value_permille(const char *text, uint64_t *ret)
{
	uint64_t percent, tenth = 0;
	int r;

	r = whole_number(&text, &percent);
	if (r < 0)
		return r;
	if (percent > 100000)
		return -ERANGE;
	if (*text == '.') {
		text++;
		r = whole_number(&text, &tenth);
		if (r < 0 || tenth > 9)
			return -EINVAL;
	}
	if (strcmp(text, "%") != 0)
		return -EINVAL;
	*ret = percent * 10 + tenth;
	return 0;
}

int value_count(const char *text, uint64_t *ret)
{
	uint64_t value;
	int r = whole_number(&text, &value);

	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret = value;
	return 0;
}

int value_bool(const char *text, bool *ret)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = i % 2;
			return 0;
		}
	}
	return -EINVAL;
}

static const char *text_of(uint64_t value, const struct unit *units, size_t n_units, char buf[32])
{
	const struct unit *best = &units[0];

	for (size_t i = 1; value && i < n_units; i++)
		if (value % units[i].size == 0)
			best = &units[i];
	snprintf(buf, 32, "%" PRIu64 "%s", value / best->size, best->name);
	return buf;
}

const char *value_duration_text(uint64_t ns, char buf[32])
{
	return text_of(ns, durations, ARRAY_SIZE(durations), buf);
}

const char *value_bytes_text(uint64_t bytes, char buf[32])
{
	return text_of(bytes, sizes, ARRAY_SIZE(sizes), buf);
}
