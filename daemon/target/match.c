/* The words by which a person names a target: what `kindling status` shows. */
#include <string.h>
#include "daemon/target/target_priv.h"

#define CONTAINER_ID_MIN 12

static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static bool matches(const struct target *t, const char *word)
{
	const char *pod = strchr(t->jvm.pod, '/');
	size_t len = strlen(word);

	if (is_number(word) && len < 10)
		return (unsigned long)t->jvm.pid == strtoul(word, NULL, 10);
	if (len >= CONTAINER_ID_MIN && strncmp(t->jvm.container_id, word, len) == 0)
		return true;
	if (t->jvm.container[0] && strcmp(t->jvm.container, word) == 0)
		return true;
	if (t->jvm.pod[0] && (strcmp(t->jvm.pod, word) == 0 || (pod && strcmp(pod + 1, word) == 0)))
		return true;
	return len > 0 && strstr(t->jvm.name, word) != NULL;
}

struct target *targets_match(struct targets *table, const char *word, const struct target *prev)
{
	struct target *t = targets_next(table, prev);

	while (t && !matches(t, word))
		t = targets_next(table, t);
	return t;
}
