/* Durations and moments in the form that people write. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/value.h"

static bool time_is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

bool parse_length(const char *s, uint64_t *ret_ns)
{
	uint64_t ns = 0;

	if (value_length_ns(s, &ns) < 0 || ns == 0)
		return false;
	*ret_ns = ns;
	return true;
}

int parse_interval(const char *s, uint64_t *ret_ns, char *why, size_t why_size)
{
	*why = '\0';
	if (value_is_bare(s))
		snprintf(why, why_size, "%.20s has no unit: %.20sms?", s, s);
	return !*why && parse_length(s, ret_ns) ? 0 : -EINVAL;
}

/* The last moment before @now at which clocks showed the time in @tm. */
static time_t last_time_of_day(struct tm tm, time_t now)
{
	struct tm day;
	time_t t;

	localtime_r(&now, &day);
	for (int back = 0; back < 2; back++) {
		day.tm_hour = tm.tm_hour;
		day.tm_min = tm.tm_min;
		day.tm_sec = tm.tm_sec;
		day.tm_mday -= back;
		day.tm_isdst = -1;
		t = mktime(&day);
		if (t <= now)
			break;
	}
	return t;
}

/* Converts to ns; false: before 1970 or after 2554, which 64 bits of ns cannot hold. */
static bool as_ns(time_t t, uint64_t *ret_ns)
{
	if (t < 0 || (uint64_t)t > UINT64_MAX / NS_PER_S)
		return false;
	*ret_ns = (uint64_t)t * NS_PER_S;
	return true;
}

/* Splits a fraction such as ".25" off a moment; 0 ns if it has none. false = it is too long. */
static bool split_fraction(const char *s, char *whole, size_t size, uint64_t *ret_ns)
{
	const char *dot = strrchr(s, '.'), *colon = strchr(s, ':');
	bool seconds = *s == '@' || (colon && strchr(colon + 1, ':'));
	uint64_t unit = NS_PER_S / 10;

	*ret_ns = 0;
	if (!dot || !seconds || !time_is_number(dot + 1) || strlen(dot + 1) > 9)
		dot = s + strlen(s);
	for (const char *c = dot; *c && *++c; unit /= 10)
		*ret_ns += (uint64_t)(*c - '0') * unit;
	return (size_t)snprintf(whole, size, "%.*s", (int)(dot - s), s) < size;
}

static bool parse_whole_moment(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	static const char *const dates[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
					     "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M" };
	static const char *const times[] = { "%H:%M:%S", "%H:%M" };
	const char *end;
	struct tm tm;

	if (*s == '@') /* seconds since 1970 are parsed like a length */
		return time_is_number(s + 1) && parse_length(s + 1, ret_ns);
	for (size_t i = 0; i < ARRAY_SIZE(dates); i++) {
		memset(&tm, 0, sizeof(tm));
		end = strptime(s, dates[i], &tm);
		tm.tm_isdst = -1;
		if (end && !*end)
			return as_ns(mktime(&tm), ret_ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		memset(&tm, 0, sizeof(tm));
		end = strptime(s, times[i], &tm);
		if (end && !*end)
			return as_ns(last_time_of_day(tm, (time_t)(now_ns / NS_PER_S)), ret_ns);
	}
	return false;
}

bool parse_moment(const char *s, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t fraction_ns;
	char whole[64];

	if (!split_fraction(s, whole, sizeof(whole), &fraction_ns) ||
	    !parse_whole_moment(whole, now_ns, ret_ns))
		return false;
	*ret_ns += fraction_ns;
	return true;
}
