/* See label_rules.h. */
#include "daemon/core/label_rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/mem.h"

#define GROUPS	    10 /* \0 to \9 */
#define REPEATS_MAX 1000 /* libc expands repetitions; nested ones multiply */

static bool label_rules_fit(const char *pattern, const char *text)
{
	return strpbrk(pattern, "*?[") ? fnmatch(pattern, text, 0) == 0
				       : strcmp(pattern, text) == 0;
}

/* Do all conditions of the rule hold? A missing label counts as an empty one. */
static bool label_rules_hold(const struct config_label_rule *rule, const char *name,
			     const struct labels *labels)
{
	char value[LABEL_VALUE_SIZE];

	for (unsigned i = 0; i < rule->n_where; i++) {
		const struct config_label *w = &rule->where[i];
		const char *text = strcmp(w->key, "name") == 0
					   ? name
					   : labels_get(labels->text, w->key, value);

		if (!label_rules_fit(w->value, text))
			return false;
	}
	return true;
}

/* ---- regular expressions ------------------------------------------------------------------- */

/* The product of the largest counts of all {n,m} in @regex: an upper bound for nested ones. */
static unsigned long label_rules_repeats(const char *regex)
{
	unsigned long product = 1;

	for (const char *p = strchr(regex, '{'); p; p = strchr(p + 1, '{')) {
		char *end;
		unsigned long n = strtoul(p + 1, &end, 10),
			      m = *end == ',' ? strtoul(end + 1, NULL, 10) : n;

		n = n > m ? n : m;
		if (n > REPEATS_MAX)
			return n;
		product *= n ? n : 1;
		if (product > REPEATS_MAX)
			break;
	}
	return product;
}

/* Does @regex have a back-reference, as \1? Matching one may take exponential time. */
static bool label_rules_has_back_reference(const char *regex)
{
	for (const char *p = strchr(regex, '\\'); p && p[1]; p = strchr(p + 2, '\\'))
		if (p[1] >= '0' && p[1] <= '9')
			return true;
	return false;
}

int label_rules_check_regex(const char *regex, char *why, size_t why_size)
{
	char error[100];
	regex_t compiled;
	int r;

	if (label_rules_has_back_reference(regex)) {
		snprintf(why, why_size, "cannot refer to a group of its own, as \\1 does");
		return -EINVAL;
	}
	if (label_rules_repeats(regex) > REPEATS_MAX) {
		snprintf(why, why_size, "repeats more than %d times", REPEATS_MAX);
		return -EINVAL;
	}
	r = regcomp(&compiled, regex, REG_EXTENDED);
	if (r) {
		regerror(r, &compiled, error, sizeof(error));
		snprintf(why, why_size, "is not a regular expression: %s; \"%.100s\"", error,
			 regex);
		return -EINVAL;
	}
	regfree(&compiled);
	return 0;
}

/* Appends @len bytes, or as many as fit, to the @n bytes in @buf. Returns the new length. */
static size_t label_rules_append(char buf[LABEL_VALUE_SIZE], size_t n, const char *text, size_t len)
{
	if (len > LABEL_VALUE_SIZE - 1 - n)
		len = LABEL_VALUE_SIZE - 1 - n;
	memcpy(buf + n, text, len);
	return n + len;
}

/* Appends @with, in which \N is replaced by group N of @text. Returns the new length. */
static size_t label_rules_expand(char buf[LABEL_VALUE_SIZE], size_t n, const char *with,
				 const char *text, const regmatch_t groups[GROUPS])
{
	for (const char *p = with; *p; p++) {
		const regmatch_t *g = NULL;

		if (p[0] == '\\' && p[1] >= '0' && p[1] <= '9')
			g = &groups[p[1] - '0'];
		if (!g) {
			n = label_rules_append(buf, n, p, 1);
			continue;
		}
		if (g->rm_so >= 0)
			n = label_rules_append(buf, n, text + g->rm_so,
					       (size_t)(g->rm_eo - g->rm_so));
		p++;
	}
	return n;
}

/* Replaces the first match in the label's value by the rule's text. */
static void label_rules_replace(const struct config_label_rule *rule, struct labels *labels)
{
	char value[LABEL_VALUE_SIZE], made[LABEL_VALUE_SIZE];
	regmatch_t groups[GROUPS];
	regex_t compiled;
	size_t n = 0;

	labels_get(labels->text, rule->label, value);
	if (regcomp(&compiled, rule->regex, REG_EXTENDED) != 0)
		return;
	if (regexec(&compiled, value, GROUPS, groups, 0) == 0) {
		n = label_rules_append(made, n, value, (size_t)groups[0].rm_so);
		n = label_rules_expand(made, n, rule->to, value, groups);
		n = label_rules_append(made, n, value + groups[0].rm_eo,
				       strlen(value + groups[0].rm_eo));
		made[n] = '\0';
		(void)labels_set(labels, rule->label, made);
	}
	regfree(&compiled);
}

/* ---- changes of labels --------------------------------------------------------------------- */

static void label_rules_drop(const char *pattern, struct labels *labels)
{
	const char *p = labels->text;
	const char *line = p;
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	while (labels_next_text(&p, key, value)) {
		if (label_rules_fit(pattern, key)) {
			(void)labels_set(labels, key, NULL);
			p = line; /* the next label has moved to this position */
		}
		line = p;
	}
}

static void label_rules_rename(const struct config_label_rule *rule, struct labels *labels)
{
	char value[LABEL_VALUE_SIZE];

	if (!*labels_get(labels->text, rule->label, value))
		return;
	(void)labels_set(labels, rule->label, NULL);
	(void)labels_set(labels, rule->to, value);
}

void label_rules_apply(const struct config_label_rule *rules, unsigned n, const char *name,
		       struct labels *labels)
{
	for (unsigned i = 0; i < n; i++) {
		const struct config_label_rule *rule = &rules[i];

		if (!label_rules_hold(rule, name, labels))
			continue;
		switch (rule->what) {
		case LABEL_SET:
			(void)labels_set(labels, rule->label, rule->to);
			break;
		case LABEL_RENAME:
			label_rules_rename(rule, labels);
			break;
		case LABEL_REPLACE:
			label_rules_replace(rule, labels);
			break;
		case LABEL_DROP:
			label_rules_drop(rule->label, labels);
			break;
		}
	}
}
