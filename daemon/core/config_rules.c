/* targets.rules: what may stand in one of them. The list itself is walked by config.c. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/config_fields.h"
#include "daemon/core/config_value.h"
#include "daemon/core/mem.h"

#define TEXT(name)                                                 \
	{                                                          \
#name, offsetof(struct config_rule, name),         \
			sizeof(((struct config_rule *)NULL)->name) \
	}

static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {
	TEXT(container), TEXT(pod), TEXT(namespace), TEXT(image), TEXT(command), TEXT(environment),
};

/* "1000" or "1000-1999" */
static bool set_uid(struct config_rule *rule, const char *text)
{
	char first[16];
	size_t len = strcspn(text, "-");
	uint64_t min, max;

	if (len >= sizeof(first))
		return false;
	memcpy(first, text, len);
	first[len] = '\0';
	if (value_count(first, &min) < 0)
		return false;
	max = min;
	if (text[len] && value_count(text + len + 1, &max) < 0)
		return false;
	if (min > max || max > UINT32_MAX)
		return false;
	rule->uid_min = (uint32_t)min;
	rule->uid_max = (uint32_t)max;
	rule->has_uid = true;
	return true;
}

static int set_text(char *member, size_t size, const char *text, char *why, size_t why_size)
{
	if (*text && strlen(text) < size) {
		strcpy(member, text);
		return 0;
	}
	if (*text)
		snprintf(why, why_size, "is longer than %zu bytes", size - 1);
	else
		snprintf(why, why_size, "must not be empty");
	return -EINVAL;
}

int config_rule_set(struct config_rule *rule, const char *key, const char *text, char *why,
		    size_t why_size)
{
	if (strcmp(key, "uid") == 0) {
		if (set_uid(rule, text))
			return 0;
		snprintf(why, why_size, "must be a uid or a range, as in 1000-1999; not \"%.100s\"",
			 text);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(key, texts[i].key) != 0)
			continue;
		if (strcmp(key, "environment") == 0 && !strchr(text, '=')) {
			snprintf(why, why_size, "must be NAME=value, not \"%.100s\"", text);
			return -EINVAL;
		}
		return set_text((char *)rule + texts[i].offset, texts[i].size, text, why, why_size);
	}
	snprintf(why, why_size,
		 "there is no such condition; there are container, pod, namespace, "
		 "image, uid, command and environment");
	return -EINVAL;
}

bool config_rule_is_empty(const struct config_rule *rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (*((const char *)rule + texts[i].offset))
			return false;
	return !rule->has_uid;
}
