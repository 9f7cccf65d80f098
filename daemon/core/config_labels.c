/* Parses labels.set and labels.rules, and writes their entries as they would be in the file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/config_priv.h"
#include "daemon/core/label_rules.h"
#include "daemon/ground/mem.h"

static const char *const change_names[] = {
	[LABEL_SET] = "set",
	[LABEL_RENAME] = "rename",
	[LABEL_REPLACE] = "replace",
	[LABEL_DROP] = "drop",
};

/* ---- pairs of words ------------------------------------------------------------------------ */

/* Copies a scalar to @buf; anything else is refused with the sentence @what. */
static int config_labels_scalar(struct reading *r, const yaml_event_t *event, const char *what,
				char *buf, size_t size)
{
	const char *text;

	if (event->type != YAML_SCALAR_EVENT)
		return config_refuse(r, "%s", what);
	text = (const char *)event->data.scalar.value;
	if (strlen(text) != event->data.scalar.length)
		return config_refuse(r, "contains a NUL byte");
	if (strlen(text) >= size)
		return config_refuse(r, "is longer than %zu bytes", size - 1);
	strcpy(buf, text);
	return 0;
}

/* Reads the next key of a map and appends it to r->name, or the map's end: *ret_end. */
static int config_labels_key(struct reading *r, char key[LABEL_KEY_SIZE], bool *ret_end)
{
	size_t parent = strlen(r->name);
	yaml_event_t event;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	*ret_end = event.type == YAML_MAPPING_END_EVENT;
	if (!*ret_end)
		n = config_labels_scalar(r, &event, "a label's name must be a word", key,
					 LABEL_KEY_SIZE);
	yaml_event_delete(&event);
	if (n == 0 && !*ret_end)
		snprintf(r->name + parent, sizeof(r->name) - parent, ".%s", key);
	return n;
}

/* Reads the value after a key. */
static int config_labels_value(struct reading *r, char *buf, size_t size)
{
	yaml_event_t event;
	int n = config_next_event(r, &event);

	if (n < 0)
		return n;
	n = config_labels_scalar(r, &event, "takes one value", buf, size);
	yaml_event_delete(&event);
	return n;
}

static int config_labels_check_key(struct reading *r, const char *key)
{
	if (labels_key_is_valid(key))
		return 0;
	return config_refuse(r,
			     "must be the name of a label: a letter or _, then letters, digits, _ "
			     ". - and /; not \"%.100s\"",
			     key);
}

/* Reads one `key: value` of a map of labels, or the map's end: *ret_end. */
static int config_labels_pair(struct reading *r, struct config_label *ret, bool *ret_end)
{
	size_t parent = strlen(r->name);
	int n = config_labels_key(r, ret->key, ret_end);

	if (n < 0 || *ret_end)
		return n;
	n = config_labels_check_key(r, ret->key);
	if (n == 0)
		n = config_labels_value(r, ret->value, sizeof(ret->value));
	if (n == 0)
		r->name[parent] = '\0';
	return n;
}

/* ---- labels.set ---------------------------------------------------------------------------- */

int config_take_labels(struct reading *r)
{
	struct config *c = r->config;
	struct config_label label;
	bool end = false;
	int n;

	if (c->n_labels)
		return config_refuse(r, "is set a second time");
	for (;;) {
		memset(&label, 0, sizeof(label)); /* also the padding, which memcmp() compares */
		n = config_labels_pair(r, &label, &end);
		if (n < 0 || end)
			return n;
		if (!label.value[0])
			return config_refuse(r, "%s: must not be empty", label.key);
		if (c->n_labels == CONFIG_LABELS_MAX)
			return config_refuse(r, "at most %d labels are allowed", CONFIG_LABELS_MAX);
		for (unsigned i = 0; i < c->n_labels; i++)
			if (strcmp(c->labels[i].key, label.key) == 0)
				return config_refuse(r, "%s: is set a second time", label.key);
		c->labels[c->n_labels++] = label;
	}
}

/* ---- labels.rules -------------------------------------------------------------------------- */

#define SHAPE                                                                                       \
	"must be one rule: set: { label: value }, rename: { old: new }, drop: label or replace: { " \
	"label: x, regex: x, with: x }, and where: { label: value } if not for all"

/* Reads the one pair of set or rename, `{ label: value }`. */
static int config_labels_one(struct reading *r, struct config_label_rule *rule)
{
	struct config_label label = { { 0 }, { 0 } };
	bool end = false;
	int n = config_need_event(r, YAML_MAPPING_START_EVENT, "takes one pair, as in { app: x }");

	if (n == 0)
		n = config_labels_pair(r, &label, &end);
	if (n == 0 && (end || !label.value[0]))
		n = config_refuse(r, "takes one pair, as in { app: x }");
	if (n == 0 && rule->what == LABEL_RENAME)
		n = config_labels_check_key(r, label.value);
	if (n < 0)
		return n;
	memcpy(rule->label, label.key, sizeof(rule->label));
	memcpy(rule->to, label.value, sizeof(rule->to));
	return config_need_event(r, YAML_MAPPING_END_EVENT,
				 "takes one pair; others are rules of their own");
}

/* Reads a key of replace with its value, or the end of the map: *ret_end. */
static int config_labels_replace_part(struct reading *r, struct config_label_rule *rule,
				      bool *ret_end)
{
	size_t parent = strlen(r->name);
	char key[LABEL_KEY_SIZE], why[300];
	int n = config_labels_key(r, key, ret_end);

	if (n < 0 || *ret_end)
		return n;
	if (strcmp(key, "label") == 0) {
		n = config_labels_value(r, rule->label, sizeof(rule->label));
		n = n < 0 ? n : config_labels_check_key(r, rule->label);
	} else if (strcmp(key, "with") == 0) {
		n = config_labels_value(r, rule->to, sizeof(rule->to));
	} else if (strcmp(key, "regex") == 0) {
		n = config_labels_value(r, rule->regex, sizeof(rule->regex));
		if (n == 0 && label_rules_check_regex(rule->regex, why, sizeof(why)) < 0)
			n = config_refuse(r, "%s", why);
	} else {
		n = config_refuse(r, "there is no such key; the keys are label, regex and with");
	}
	if (n == 0)
		r->name[parent] = '\0';
	return n;
}

static int config_labels_replace(struct reading *r, struct config_label_rule *rule)
{
	static const char shape[] = "takes { label: x, regex: x, with: x }";
	bool end = false;
	int n = config_need_event(r, YAML_MAPPING_START_EVENT, shape);

	while (n == 0 && !end)
		n = config_labels_replace_part(r, rule, &end);
	if (n == 0 && (!rule->label[0] || !rule->regex[0]))
		n = config_refuse(r, "%s", shape);
	return n;
}

static int config_labels_where(struct reading *r, struct config_label_rule *rule)
{
	bool end = false;
	int n = config_need_event(r, YAML_MAPPING_START_EVENT,
				  "takes labels, as in { namespace: \"shop-*\" }");

	while (n == 0) {
		struct config_label label = { { 0 }, { 0 } };

		n = config_labels_pair(r, &label, &end);
		if (n < 0 || end)
			break;
		if (rule->n_where == LABEL_WHERE_MAX)
			return config_refuse(r, "at most %d conditions are allowed",
					     LABEL_WHERE_MAX);
		rule->where[rule->n_where++] = label;
	}
	return n;
}

/* A key of a rule with its value, or the rule's end. */
static int config_labels_rule_part(struct reading *r, struct config_label_rule *rule,
				   bool *ret_whole, bool *ret_end)
{
	size_t parent = strlen(r->name), what = 0;
	char key[LABEL_KEY_SIZE];
	int n = config_labels_key(r, key, ret_end);

	if (n < 0 || *ret_end)
		return n;
	while (what < ARRAY_SIZE(change_names) && strcmp(key, change_names[what]) != 0)
		what++;
	if (strcmp(key, "where") == 0 && !rule->n_where)
		n = config_labels_where(r, rule);
	else if (what == ARRAY_SIZE(change_names) || *ret_whole)
		n = config_refuse(r, SHAPE);
	else {
		*ret_whole = true;
		rule->what = (enum label_change)what;
		if (what == LABEL_DROP)
			n = config_labels_value(r, rule->label, sizeof(rule->label));
		else if (what == LABEL_REPLACE)
			n = config_labels_replace(r, rule);
		else
			n = config_labels_one(r, rule);
	}
	if (n == 0)
		r->name[parent] = '\0';
	return n;
}

static int config_labels_rule(struct reading *r, struct config_label_rule *rule)
{
	bool whole = false, end = false;
	int n = 0;

	while (n == 0 && !end)
		n = config_labels_rule_part(r, rule, &whole, &end);
	if (n == 0 && (!whole || !rule->label[0]))
		n = config_refuse(r, SHAPE);
	return n;
}

int config_take_label_rules(struct reading *r)
{
	struct config *c = r->config;
	size_t parent = strlen(r->name);
	yaml_event_t event;
	int n;

	if (c->n_label_rules)
		return config_refuse(r, "is set a second time");
	while ((n = config_next_event(r, &event)) == 0) {
		yaml_event_type_t type = event.type;
		struct config_label_rule *rule = &c->label_rules[c->n_label_rules];

		yaml_event_delete(&event);
		if (type == YAML_SEQUENCE_END_EVENT)
			return 0;
		snprintf(r->name + parent, sizeof(r->name) - parent, "[%u]", c->n_label_rules);
		if (type != YAML_MAPPING_START_EVENT)
			return config_refuse(r, SHAPE);
		if (c->n_label_rules == LABEL_RULES_MAX)
			return config_refuse(r, "at most %d rules are allowed", LABEL_RULES_MAX);
		memset(rule, 0, sizeof(*rule)); /* also the padding, which memcmp() compares */
		n = config_labels_rule(r, rule);
		if (n < 0)
			return n;
		c->n_label_rules++;
		r->name[parent] = '\0';
	}
	return n;
}

/* ---- as they are in the file --------------------------------------------------------------- */

/* Appends @before and `key: "value"` to the @n bytes in @buf; returns the new length. */
static size_t config_labels_put(char *buf, size_t size, size_t n, const char *before,
				const char *key, const char *value)
{
	char text[2 * LABEL_VALUE_SIZE + 8];

	if (n >= size)
		return n;
	config_quoted(value, text, sizeof(text));
	return n + (size_t)snprintf(buf + n, size - n, "%s%s: %s", before, key, text);
}

const char *config_label(const struct config *c, unsigned index, char *buf, size_t size)
{
	*buf = '\0';
	(void)config_labels_put(buf, size, 0, "", c->labels[index].key, c->labels[index].value);
	return buf;
}

const char *config_label_rule(const struct config *c, unsigned index, char *buf, size_t size)
{
	const struct config_label_rule *rule = &c->label_rules[index];
	const char *what = change_names[rule->what];
	size_t n;

	if (rule->what == LABEL_DROP) {
		n = config_labels_put(buf, size, 0, "{ ", what, rule->label);
	} else if (rule->what == LABEL_REPLACE) {
		n = config_labels_put(buf, size, 0, "{ replace: { ", "label", rule->label);
		n = config_labels_put(buf, size, n, ", ", "regex", rule->regex);
		n = config_labels_put(buf, size, n, ", ", "with", rule->to);
	} else {
		n = (size_t)snprintf(buf, size, "{ %s: { ", what);
		n = config_labels_put(buf, size, n, "", rule->label, rule->to);
	}
	if (rule->what != LABEL_DROP && n < size)
		n += (size_t)snprintf(buf + n, size - n, " }");
	for (unsigned i = 0; i < rule->n_where; i++)
		n = config_labels_put(buf, size, n, i ? ", " : ", where: { ", rule->where[i].key,
				      rule->where[i].value);
	if (n < size)
		(void)snprintf(buf + n, size - n, rule->n_where ? " } }" : " }");
	return buf;
}
