/* See patterns.h. Anybody who may open the socket writes patterns, so their cost is bounded. */
#include "daemon/report/patterns.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/ground/clock.h"

#define NO_STACK  "[no stack]"
#define FORGET_NS (200 * NS_PER_MS)

/* ---- limits of patterns ---------------------------------------------------------------------- */

static int patterns_compile(const char *pattern, regex_t *ret)
{
	return regcomp(ret, pattern, REG_EXTENDED | REG_NOSUB);
}

/* Where an error begins: behind the longest prefix that is valid by itself. */
static size_t fine_until(const char *pattern)
{
	char part[PATTERN_BYTES_MAX + 1];
	regex_t regex;

	for (size_t len = strlen(pattern); len > 0; len--) {
		memcpy(part, pattern, len);
		part[len] = '\0';
		if (patterns_compile(part, &regex) != 0)
			continue;
		regfree(&regex);
		return len;
	}
	return 0;
}

/* Does it have a "\1", the text of an earlier group? Matching that takes exponential time. */
static bool has_back_reference(const char *pattern)
{
	for (const char *s = pattern; (s = strchr(s, '\\')) && s[1]; s += 2)
		if (s[1] >= '1' && s[1] <= '9')
			return true;
	return false;
}

/* The larger number of "{2,5}" at @s. */
static uint64_t bound_at(const char *s)
{
	const char *comma = s + 1 + strspn(s + 1, "0123456789");
	uint64_t low = strtoul(s + 1, NULL, 10);
	uint64_t high = *comma == ',' ? strtoul(comma + 1, NULL, 10) : 0;
	uint64_t n = low > high ? low : high;

	return n ? n : 1;
}

/* By how much the operator at @s multiplies what precedes it: "(a)+" is "(a)(a)*", and "a+++"
 * has eight times the a. @before: the character before the operator. */
static uint64_t patterns_times_at(const char *s, char before)
{
	uint64_t n = 1;

	if (*s == '{')
		n = bound_at(s);
	else if (*s == '+' && before && strchr(")}+*?", before))
		n = 2;
	return n > PATTERN_PLACES_MAX ? PATTERN_PLACES_MAX + 1 : n;
}

/* Is it longer than PATTERN_PLACES_MAX when all repetitions are multiplied? "(a{9}){9}" has 81
 * times the a. */
static bool has_too_many_places(const char *pattern)
{
	uint64_t places = strlen(pattern);
	char before = '\0';

	for (const char *s = pattern; *s && places <= PATTERN_PLACES_MAX; s++) {
		places *= patterns_times_at(s, before);
		before = *s;
		if (*s == '\\' && s[1])
			s++;
	}
	return places > PATTERN_PLACES_MAX;
}

static bool patterns_refuse(char *why, size_t why_size, const char *pattern, const char *what)
{
	snprintf(why, why_size, "\"%.100s\" %s", pattern, what);
	return false;
}

bool report_pattern_is_fine(const char *pattern, char *why, size_t why_size)
{
	char what[128], error[80];
	regex_t regex;
	int r;

	if (!*pattern)
		return patterns_refuse(why, why_size, pattern, "is empty");
	if (strlen(pattern) > PATTERN_BYTES_MAX)
		return patterns_refuse(why, why_size, pattern, "... is longer than 256 bytes");
	if (has_back_reference(pattern))
		return patterns_refuse(why, why_size, pattern,
				       "has a back-reference, which is not allowed");
	if (has_too_many_places(pattern))
		return patterns_refuse(why, why_size, pattern, "has too many repetitions");
	r = patterns_compile(pattern, &regex);
	if (r == 0) {
		regfree(&regex);
		return true;
	}
	(void)regerror(r, NULL, error, sizeof(error));
	snprintf(what, sizeof(what), "is not a regular expression: %s, at \"%.20s\"", error,
		 pattern + fine_until(pattern));
	return patterns_refuse(why, why_size, pattern, what);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct matcher {
	const char *pattern;
	regex_t regex;
	uint64_t begin_ns, compiled_ns; /* CPU time of this thread: at the begin, and when the
					   pattern was last compiled */
};

static uint64_t patterns_cpu_ns(void)
{
	struct timespec t = { 0, 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Matches one name. The matcher's cache grows with every new name, so the pattern is compiled
 * again from time to time. 0 or -errno. */
static int patterns_match(struct matcher *m, const char *name, bool *ret)
{
	uint64_t now = patterns_cpu_ns();

	if (now - m->begin_ns > PATTERN_CPU_NS)
		return -ETIME;
	if (now - m->compiled_ns > FORGET_NS) {
		regfree(&m->regex);
		if (patterns_compile(m->pattern, &m->regex) != 0)
			return -ENOMEM; /* after which regfree() does nothing */
		m->compiled_ns = now;
	}
	*ret = regexec(&m->regex, name, 0, NULL, 0) == 0;
	return 0;
}

/* Which frames match; ret[n_frames] is for samples without a stack. */
static int match_frames(const struct profile *p, const char *pattern, bool *ret)
{
	struct matcher m = { .pattern = pattern, .begin_ns = patterns_cpu_ns() };
	char why[300], name[1024];
	int r = 0;

	if (!report_pattern_is_fine(pattern, why, sizeof(why)) ||
	    patterns_compile(pattern, &m.regex) != 0)
		return -EINVAL;
	m.compiled_ns = m.begin_ns;
	for (uint32_t i = 0; r == 0 && i < p->n_frames; i++) {
		report_frame_name(p, &p->frames[i], name, sizeof(name));
		r = patterns_match(&m, name, &ret[i]);
	}
	if (r == 0)
		r = patterns_match(&m, NO_STACK, &ret[p->n_frames]);
	regfree(&m.regex);
	return r;
}

/* Which nodes have a matching frame in their stack; ret[0] is for samples without a stack.
 * Parents precede children. */
static int match_nodes(const struct profile *p, const char *pattern, bool *ret)
{
	CLEANUP(freep) bool *frames = calloc(p->n_frames + 1, sizeof(*frames));
	int r = frames ? match_frames(p, pattern, frames) : -ENOMEM;

	if (r < 0)
		return r;
	ret[0] = frames[p->n_frames];
	for (uint32_t i = 1; i < p->n_nodes; i++) {
		uint32_t parent = p->nodes[i].parent;

		ret[i] = frames[p->nodes[i].frame] || (parent && ret[parent]);
	}
	return 0;
}

/* Clears those of @rows whose stack has no matching frame, or, if @has is false, has one. */
static int patterns_keep(const struct profile *p, const char *pattern, bool has, bool *rows)
{
	CLEANUP(freep) bool *nodes = NULL;
	int r;

	if (!pattern)
		return 0;
	nodes = calloc(p->n_nodes + 1, sizeof(*nodes));
	r = nodes ? match_nodes(p, pattern, nodes) : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < p->n_rows; i++)
		rows[i] &= nodes[p->rows[i].node] == has;
	return r;
}

int report_pattern_rows(const struct profile *p, const struct report_options *o, bool **ret)
{
	CLEANUP(freep) bool *rows = NULL;
	int r;

	if (!o->include && !o->exclude)
		return 0;
	rows = malloc(p->n_rows + 1);
	if (!rows)
		return -ENOMEM;
	memset(rows, true, p->n_rows + 1);
	r = patterns_keep(p, o->include, true, rows);
	if (r == 0)
		r = patterns_keep(p, o->exclude, false, rows);
	if (r == 0)
		*ret = TAKE_PTR(rows);
	return r;
}
