/* See value.h. */
#include "daemon/ground/value.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

struct unit {
	const char *name;
	uint64_t size;
};

/* Ascending, so that the last unit that divides a value is the largest. */
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
/* Decimal units, as disks are sold; accepted, but never printed. */
static const struct unit decimal_sizes[] = {
	{ "kB", 1000 },
	{ "MB", 1000000 },
	{ "GB", 1000000000 },
	{ "TB", 1000000000000 },
};

/* Reads the digits at *text, which is moved past them. */
static int value_whole_number(const char **text, uint64_t *ret)
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

	r = value_whole_number(&text, &value);
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

/* The unit that begins at *text, which is moved past it; NULL = none. */
static const struct unit *value_unit_at(const char **text, const struct unit *units, size_t n_units)
{
	size_t len = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < n_units; i++) {
		if (strlen(units[i].name) != len || memcmp(*text, units[i].name, len) != 0)
			continue;
		*text += len;
		return &units[i];
	}
	return NULL;
}

/* Reads "1.5h" at *text, which is moved past it. Fractions of a ns are cut off. */
static int value_duration_part(const char **text, const struct unit **ret_unit, uint64_t *ret)
{
	uint64_t whole, fraction = 0, scale = 1;
	const struct unit *unit;
	int r = value_whole_number(text, &whole);

	if (r < 0)
		return r;
	if (**text == '.') {
		if (!strchr("0123456789", (*text)[1]) || !(*text)[1])
			return -EINVAL;
		while (*++*text >= '0' && **text <= '9') {
			if (scale == NS_PER_S * NS_PER_S) /* further digits are below one ns */
				continue;
			fraction = fraction * 10 + (uint64_t)(**text - '0');
			scale *= 10;
		}
	}
	*text += strspn(*text, " ");
	unit = value_unit_at(text, durations, ARRAY_SIZE(durations));
	if (!unit)
		return -EINVAL;
	fraction = (uint64_t)((unsigned __int128)fraction * unit->size / scale);
	if (__builtin_mul_overflow(whole, unit->size, ret) ||
	    __builtin_add_overflow(*ret, fraction, ret))
		return -ERANGE;
	*ret_unit = unit;
	return 0;
}

int value_duration_ns(const char *text, uint64_t *ret)
{
	const struct unit *unit = NULL, *larger = NULL;
	uint64_t sum = 0, part;
	bool too_large = false;
	int r;

	do { /* "2m30s": units become smaller */
		r = value_duration_part(&text, &unit, &part);
		if (r < 0)
			return r;
		if (larger && unit >= larger)
			return -EINVAL;
		too_large |= __builtin_add_overflow(sum, part, &sum);
		larger = unit;
		text += strspn(text, " ");
	} while (*text);
	if (too_large)
		return -ERANGE;
	*ret = sum;
	return 0;
}

bool value_is_bare(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	if (digits && text[digits] == '.' && text[digits + 1])
		digits += 1 + strspn(text + digits + 1, "0123456789");
	return digits && !text[digits];
}

int value_length_ns(const char *text, uint64_t *ret)
{
	char seconds[64];

	if (!value_is_bare(text))
		return value_duration_ns(text, ret);
	if ((size_t)snprintf(seconds, sizeof(seconds), "%ss", text) >= sizeof(seconds))
		return -ERANGE;
	return value_duration_ns(seconds, ret);
}

int value_bytes(const char *text, uint64_t *ret)
{
	int r = number_with_unit(text, sizes, ARRAY_SIZE(sizes), ret);

	return r == -EINVAL ? number_with_unit(text, decimal_sizes, ARRAY_SIZE(decimal_sizes), ret)
			    : r;
}

int value_permille(const char *text, uint64_t *ret)
{
	uint64_t percent, tenth = 0;
	int r;

	r = value_whole_number(&text, &percent);
	if (r < 0)
		return r;
	if (percent > 100000)
		return -ERANGE;
	if (*text == '.') {
		text++;
		r = value_whole_number(&text, &tenth);
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
	int r = value_whole_number(&text, &value);

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

static const char *value_text_of(uint64_t value, const struct unit *units, size_t n_units,
				 char buf[32])
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
	return value_text_of(ns, durations, ARRAY_SIZE(durations), buf);
}

const char *value_bytes_text(uint64_t bytes, char buf[32])
{
	return value_text_of(bytes, sizes, ARRAY_SIZE(sizes), buf);
}
