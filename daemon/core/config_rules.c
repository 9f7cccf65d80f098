/* Parses targets.rules, and writes a rule as it would be in the file. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/config_priv.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/value.h"

#define TEXT(name)                                                 \
	{                                                          \
#name, offsetof(struct config_rule, name),         \
			sizeof(((struct config_rule *)NULL)->name) \
	}

static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {
	TEXT(container),  TEXT(pod),	 TEXT(namespace),   TEXT(image),
	TEXT(annotation), TEXT(command), TEXT(environment),
};

/* "1000" or "1000-1999" */
static bool config_rules_set_uid(struct config_rule *rule, const char *text)
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

static int config_rules_set_text(char *member, size_t size, const char *text, char *why,
				 size_t why_size)
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

static int config_rules_set_condition(struct config_rule *rule, const char *key, const char *text,
				      char *why, size_t why_size)
{
	if (strcmp(key, "uid") == 0) {
		if (config_rules_set_uid(rule, text))
			return 0;
		snprintf(why, why_size, "must be a uid or a range, as in 1000-1999; not \"%.100s\"",
			 text);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(key, texts[i].key) != 0)
			continue;
		if ((strcmp(key, "environment") == 0 || strcmp(key, "annotation") == 0) &&
		    !strchr(text, '=')) {
			snprintf(why, why_size, "must be NAME=value, not \"%.100s\"", text);
			return -EINVAL;
		}
		return config_rules_set_text((char *)rule + texts[i].offset, texts[i].size, text,
					     why, why_size);
	}
	snprintf(why, why_size,
		 "there is no such condition; the conditions are container, pod, namespace, "
		 "image, annotation, uid, command and environment");
	return -EINVAL;
}

static bool config_rules_is_empty(const struct config_rule *rule)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (*((const char *)rule + texts[i].offset))
			return false;
	return !rule->has_uid;
}

/* ---- as it is in the file ------------------------------------------------------------------- */

void config_quoted(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	for (buf[n++] = '"'; *s && n + 4 < size; s++) {
		if (*s == '"' || *s == '\\')
			buf[n++] = '\\';
		buf[n++] = *s;
	}
	buf[n++] = '"';
	buf[n] = '\0';
}

static void config_rules_uid_text(const struct config_rule *rule, char *buf, size_t size)
{
	if (rule->uid_min == rule->uid_max)
		snprintf(buf, size, "uid: %u", rule->uid_min);
	else
		snprintf(buf, size, "uid: %u-%u", rule->uid_min, rule->uid_max);
}

const char *config_rule(const struct config *c, unsigned index, char *buf, size_t size)
{
	const struct config_rule *rule = &c->rules[index];
	size_t n = (size_t)snprintf(buf, size, "%s: {", rule->allow ? "allow" : "deny");
	const char *comma = " ";
	char text[600];

	for (size_t i = 0; i < ARRAY_SIZE(texts) && n < size; i++) {
		const char *value = (const char *)rule + texts[i].offset;

		if (!*value)
			continue;
		config_quoted(value, text, sizeof(text));
		n += (size_t)snprintf(buf + n, size - n, "%s%s: %s", comma, texts[i].key, text);
		comma = ", ";
	}
	if (rule->has_uid && n < size) {
		config_rules_uid_text(rule, text, sizeof(text));
		n += (size_t)snprintf(buf + n, size - n, "%s%s", comma, text);
	}
	if (n < size)
		snprintf(buf + n, size - n, " }");
	return buf;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* Reads a condition of @rule, or the end of the map: *ret_end. */
static int config_rules_read_condition(struct reading *r, struct config_rule *rule, bool *ret_end)
{
	size_t parent = strlen(r->name);
	char key[32], why[200];
	yaml_event_t event;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	*ret_end = event.type == YAML_MAPPING_END_EVENT;
	if (!*ret_end && event.type != YAML_SCALAR_EVENT)
		n = config_refuse(r, "a condition's name must be a word");
	else if (!*ret_end)
		snprintf(key, sizeof(key), "%s", (const char *)event.data.scalar.value);
	yaml_event_delete(&event);
	if (n < 0 || *ret_end)
		return n;
	snprintf(r->name + parent, sizeof(r->name) - parent, ".%s", key);
	n = config_next_event(r, &event);
	if (n < 0)
		return n;
	if (event.type != YAML_SCALAR_EVENT)
		n = config_refuse(r, "takes one value");
	else if (strlen((const char *)event.data.scalar.value) != event.data.scalar.length)
		n = config_refuse(r, "contains a NUL byte");
	else if (config_rules_set_condition(rule, key, (const char *)event.data.scalar.value, why,
					    sizeof(why)) < 0)
		n = config_refuse(r, "%s", why);
	yaml_event_delete(&event);
	r->name[parent] = '\0';
	return n;
}

/* Reads "allow" or "deny" and its conditions, from after the map's start event to its end event. */
static int config_rules_read_rule(struct reading *r, struct config_rule *rule)
{
	static const char shape[] =
		"must be one rule, `- deny: { command: x }` or `- allow: {...}`";
	size_t parent = strlen(r->name);
	const char *word;
	yaml_event_t event;
	bool end = false, deny;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	word = event.type == YAML_SCALAR_EVENT ? (const char *)event.data.scalar.value : "";
	rule->line = (unsigned)r->line;
	rule->allow = strcmp(word, "allow") == 0;
	deny = strcmp(word, "deny") == 0;
	yaml_event_delete(&event);
	if (!rule->allow && !deny)
		return config_refuse(r, shape);
	snprintf(r->name + parent, sizeof(r->name) - parent, ".%s", deny ? "deny" : "allow");
	n = config_need_event(r, YAML_MAPPING_START_EVENT,
			      "takes conditions, as in { namespace: shop }");
	while (n == 0 && !end)
		n = config_rules_read_condition(r, rule, &end);
	if (n == 0 && config_rules_is_empty(rule))
		n = config_refuse(r, "needs a condition, as in { namespace: shop }");
	if (n < 0)
		return n;
	r->name[parent] = '\0';
	return config_need_event(r, YAML_MAPPING_END_EVENT, shape);
}

int config_take_rules(struct reading *r)
{
	struct config *c = r->config;
	size_t parent = strlen(r->name);
	yaml_event_t event;
	int n;

	if (c->n_rules)
		return config_refuse(r, "is set a second time");
	snprintf(c->file, sizeof(c->file), "%s", r->file);
	while ((n = config_next_event(r, &event)) == 0) {
		yaml_event_type_t type = event.type;

		yaml_event_delete(&event);
		if (type == YAML_SEQUENCE_END_EVENT)
			return 0;
		snprintf(r->name + parent, sizeof(r->name) - parent, "[%u]", c->n_rules);
		if (type != YAML_MAPPING_START_EVENT)
			return config_refuse(r, "must be one rule, `- deny: { command: x }`");
		if (c->n_rules == RULES_MAX)
			return config_refuse(r, "at most %d rules are allowed", RULES_MAX);
		memset(&c->rules[c->n_rules], 0,
		       sizeof(c->rules[0])); /* also the padding, which rules_hash() hashes */
		n = config_rules_read_rule(r, &c->rules[c->n_rules]);
		if (n < 0)
			return n;
		c->n_rules++;
		r->name[parent] = '\0';
	}
	return n;
}
