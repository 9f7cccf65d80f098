#include "daemon/discovery/word.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER_ID_MIN 12
#define RESEMBLES_MIN	 3
#define WORD_MAX	 256 /* only the beginning of longer words is compared */

static bool word_is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

/* Is @word "namespace/pod/container", as `kindling status` shows it? */
static bool word_is_pod_container(const struct jvm *jvm, const char *word)
{
	size_t len = strlen(jvm->pod);

	return len && jvm->container[0] && strncmp(word, jvm->pod, len) == 0 && word[len] == '/' &&
	       strcmp(word + len + 1, jvm->container) == 0;
}

enum word_match word_names(const struct jvm *jvm, const char *word)
{
	const char *pod = strchr(jvm->pod, '/');
	size_t len = strlen(word);

	if (!len)
		return WORD_NO;
	if (word_is_number(word) && len < 10)
		return (unsigned long)jvm->pid == strtoul(word, NULL, 10) ? WORD_EXACT : WORD_NO;
	if ((len >= CONTAINER_ID_MIN && strncmp(jvm->container_id, word, len) == 0) ||
	    word_is_pod_container(jvm, word) || strcmp(jvm->container, word) == 0 ||
	    strcmp(jvm->pod, word) == 0 || (pod && strcmp(pod + 1, word) == 0) ||
	    strcmp(jvm->name, word) == 0)
		return WORD_EXACT;
	return strstr(jvm->name, word) ? WORD_PART : WORD_NO;
}

static unsigned word_common(const char *text, const char *word)
{
	unsigned best = 0;

	for (const char *t = text; *t; t++) {
		for (const char *w = word; *w && w < word + WORD_MAX; w++) {
			unsigned n = 0;

			while (t[n] && w[n] &&
			       tolower((unsigned char)t[n]) == tolower((unsigned char)w[n]))
				n++;
			if (n > best)
				best = n;
		}
	}
	return best;
}

unsigned word_resembles(const struct jvm *jvm, const char *word)
{
	const char *names[] = { jvm->name, jvm->container, jvm->pod, NULL };
	size_t len = strlen(word), least = len / 2 < RESEMBLES_MIN ? RESEMBLES_MIN : len / 2;
	unsigned best = 0;
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", jvm->pid);
	names[3] = word_is_number(word) ? pid : NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned n = names[i] ? word_common(names[i], word) : 0;

		best = n > best ? n : best;
	}
	return best >= least ? best : 0;
}
