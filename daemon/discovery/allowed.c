/* See allowed.h. */
#include "daemon/discovery/allowed.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"
#include "daemon/ground/value.h"
#include "proto/wire.h"

#define BLANKS ", \t"

static void allowed_copy_text(char *ret, size_t size, const char *as, const char *value)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%.40s%s", as, value);

	utf8_copy(ret, size, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static bool allowed_is_yes(const char *value)
{
	static const char *const words[] = { "yes", "true", "on", "1" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false;
}

static void allowed_profile(struct allowed *a, const char *value, const char *as)
{
	if (!*value)
		return;
	if (allowed_is_yes(value)) {
		a->yes = true;
		return;
	}
	a->no = true;
	allowed_copy_text(a->no_word, sizeof(a->no_word), as, value);
}

static void allowed_events(struct allowed *a, const char *value, const char *as)
{
	unsigned events = 0;
	size_t len;

	for (const char *p = value + strspn(value, BLANKS); *p;
	     p += len + strspn(p + len, BLANKS)) {
		unsigned bit = 0;

		len = strcspn(p, BLANKS);
		for (int e = 0; e < WIRE_EVENT_COUNT; e++)
			if (strlen(wire_event_names[e]) == len &&
			    strncasecmp(wire_event_names[e], p, len) == 0)
				bit = 1u << e;
		events |= bit;
		a->events_unknown |= !bit;
	}
	a->events = a->events_given ? a->events & events : events;
	a->events_given = true;
	allowed_copy_text(a->events_word, sizeof(a->events_word), as, value);
}

static void allowed_interval(struct allowed *a, const char *value, const char *as)
{
	uint64_t ns;

	if (value_duration_ns(value, &ns) < 0) {
		allowed_copy_text(a->wrong, sizeof(a->wrong), as, value);
		return;
	}
	if (ns > ALLOWED_INTERVAL_MAX)
		ns = ALLOWED_INTERVAL_MAX;
	if (ns <= a->interval_ns)
		return;
	a->interval_ns = ns;
	allowed_copy_text(a->interval_word, sizeof(a->interval_word), as, value);
}

void allowed_set_value(struct allowed *a, const char *name, const char *value, const char *as)
{
	if (strcmp(name, "profile") == 0)
		allowed_profile(a, value, as);
	else if (strcmp(name, "events") == 0)
		allowed_events(a, value, as);
	else if (strcmp(name, "interval") == 0)
		allowed_interval(a, value, as);
}

void allowed_read(struct allowed *a, const char *environ, size_t len)
{
	static const struct {
		const char *variable, *name;
	} words[] = {
		{ "KINDLING_ENABLE=", "profile" },
		{ "KINDLING_EVENTS=", "events" },
		{ "KINDLING_INTERVAL=", "interval" },
	};
	bool seen[ARRAY_SIZE(words)] = { false };

	for (const char *p = environ; p < environ + len; p += strlen(p) + 1)
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			size_t n = strlen(words[i].variable);

			if (seen[i] || strncmp(p, words[i].variable, n) != 0)
				continue;
			seen[i] = true; /* like getenv(3): the first entry counts */
			allowed_set_value(a, words[i].name, p + n, words[i].variable);
		}
}

#define ALLOWED_COPY(a, also, word)                                         \
	do {                                                                \
		if ((also)->word[0])                                        \
			memcpy((a)->word, (also)->word, sizeof((a)->word)); \
	} while (0)

void allowed_add(struct allowed *a, const struct allowed *also)
{
	a->no |= also->no;
	a->yes |= also->yes;
	if (also->events_given) {
		a->events = a->events_given ? a->events & also->events : also->events;
		a->events_given = true;
		a->events_unknown |= also->events_unknown;
		ALLOWED_COPY(a, also, events_word);
	}
	if (also->interval_ns > a->interval_ns) {
		a->interval_ns = also->interval_ns;
		ALLOWED_COPY(a, also, interval_word);
	}
	ALLOWED_COPY(a, also, no_word);
	ALLOWED_COPY(a, also, wrong);
}

void allowed_check(struct allowed *a)
{
	a->no_word[sizeof(a->no_word) - 1] = '\0';
	a->events_word[sizeof(a->events_word) - 1] = '\0';
	a->interval_word[sizeof(a->interval_word) - 1] = '\0';
	a->wrong[sizeof(a->wrong) - 1] = '\0';
	a->events &= (1u << WIRE_EVENT_COUNT) - 1;
	if (a->interval_ns > ALLOWED_INTERVAL_MAX)
		a->interval_ns = ALLOWED_INTERVAL_MAX;
}
