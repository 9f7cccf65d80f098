/* Labels as one text, and the rules that change them. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/core/config.h"
#include "daemon/core/label_rules.h"
#include "daemon/core/labels.h"

static struct labels labels;
static char value[LABEL_VALUE_SIZE];

static int set_up(void **state)
{
	(void)state;
	memset(&labels, 0, sizeof(labels));
	return 0;
}

static void a_label_is_found_again_whatever_the_order(void **state)
{
	(void)state;
	assert_int_equal(labels_set(&labels, "service", "shop"), 0);
	assert_int_equal(labels_set(&labels, "app", "a"), 0);
	assert_int_equal(labels_set(&labels, "service.x", "y"), 0);
	assert_int_equal(labels_set(&labels, "pod", "shop-1"), 0);
	assert_string_equal(labels.text, "app=a\npod=shop-1\nservice=shop\nservice.x=y\n");
	assert_int_equal(labels_set(&labels, "service", "cart=1"), 0);
	assert_int_equal(labels_set(&labels, "app", ""), 0);
	assert_string_equal(labels.text, "pod=shop-1\nservice=cart=1\nservice.x=y\n");
	assert_int_equal(labels.len, strlen(labels.text));
	assert_string_equal(labels_get(labels.text, "service", value), "cart=1");
	assert_string_equal(labels_get(labels.text, "servic", value), "");
	assert_true(labels_is(labels.text, "pod", "shop-1"));
	assert_false(labels_is(labels.text, "pod", "shop"));
	assert_false(labels_is("", "pod", ""));
}

static void a_value_cannot_pretend_to_be_two_labels(void **state)
{
	(void)state;
	assert_int_equal(labels_set(&labels, "service", "x\nteam=evil\x1b[2J\xff"), 0);
	assert_string_equal(labels.text, "service=x?team=evil?[2J?\n");
	assert_int_equal(labels_set(&labels, "a b", "x"), -EINVAL);
	assert_int_equal(labels_set(&labels, "", "x"), -EINVAL);
	assert_int_equal(labels_set(&labels, "a=b", "x"), -EINVAL);
	assert_int_equal(labels_set(&labels, "9", "x"), -EINVAL);
}

static void long_values_are_cut_and_overflow_is_counted(void **state)
{
	char key[LABEL_KEY_SIZE + 1], text[400];

	(void)state;
	memset(text, 'v', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(labels_set(&labels, key, "x"), -EINVAL);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		(void)labels_set(&labels, key, text);
	}
	assert_int_equal(strlen(labels_get(labels.text, "key0", value)), LABEL_VALUE_SIZE - 1);
	assert_true(labels.len < sizeof(labels.text));
	assert_int_equal(labels.len, strlen(labels.text));
	assert_int_equal(labels.left_out,
			 40 - (sizeof(labels.text) - 1 + 10 /* key0 to key9 */) /
					 (LABEL_VALUE_SIZE - 1 + strlen("key10=\n")));
}

static void text_of_somebody_else_is_read_without_harm(void **state)
{
	const char *text = "no label\n=x\na=1\n\n\nb=2";
	struct label label;
	unsigned n = 0;

	(void)state;
	while (labels_next(&text, &label))
		n++;
	assert_int_equal(n, 3); /* one has no key */
	assert_string_equal(labels_get("no label\n=x\na=1\n\n\nb=2", "b", value), "2");
}

/* ---- rules ----------------------------------------------------------------------------------- */

static struct config config;
static char err[400];

static int parse(const char *text)
{
	err[0] = '\0';
	config_defaults(&config);
	return config_parse(&config, "k.yaml", text, strlen(text), err, sizeof(err));
}

static const char *changed(const char *rule)
{
	char text[600];

	snprintf(text, sizeof(text), "labels:\n  rules:\n    - %s\n", rule);
	if (parse(text) < 0)
		fail_msg("%s", err);
	memset(&labels, 0, sizeof(labels));
	(void)labels_set(&labels, "namespace", "prod");
	(void)labels_set(&labels, "service", "shop-12-blue");
	label_rules_apply(config.label_rules, config.n_label_rules, "org.shop.Main", &labels);
	return labels.text;
}

static void each_kind_of_rule_does_what_it_says(void **state)
{
	(void)state;
	assert_string_equal(changed("set: { team: a }"),
			    "namespace=prod\nservice=shop-12-blue\nteam=a\n");
	assert_string_equal(changed("rename: { service: app }"),
			    "app=shop-12-blue\nnamespace=prod\n");
	assert_string_equal(changed("rename: { missing: app }"),
			    "namespace=prod\nservice=shop-12-blue\n");
	assert_string_equal(changed("drop: \"*\""), "");
	assert_string_equal(changed("drop: service"), "namespace=prod\n");
	assert_string_equal(
		changed("replace: { label: service, regex: \"-([0-9]+)-(blue|green)$\", "
			"with: \"/\\\\2\\\\1\\\\9\" }"),
		"namespace=prod\nservice=shop/blue12\n");
	assert_string_equal(changed("replace: { label: service, regex: \"^shop-\" }"),
			    "namespace=prod\nservice=12-blue\n");
	assert_string_equal(changed("replace: { label: service, regex: \".*\", with: \"\" }"),
			    "namespace=prod\n");
}

static void a_rule_is_for_those_that_fit_alone(void **state)
{
	static const char all[] = "namespace=prod\nservice=shop-12-blue\n";

	(void)state;
	assert_string_equal(changed("{ drop: service, where: { namespace: \"pr?d\" } }"),
			    "namespace=prod\n");
	assert_string_equal(changed("{ drop: service, where: { namespace: pr } }"), all);
	assert_string_equal(changed("{ drop: service, where: { namespace: prod, name: \"x*\" } }"),
			    all);
	assert_string_equal(changed("{ where: { name: \"*Main\", missing: \"\" }, drop: service }"),
			    "namespace=prod\n");
}

static void endless_values_are_cut(void **state)
{
	char rule[300];

	(void)state;
	snprintf(rule, sizeof(rule), "replace: { label: service, regex: \".*\", with: \"%s\" }",
		 "\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0"
		 "\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0\\\\0");
	assert_int_equal(strlen(labels_get(changed(rule), "service", value)), LABEL_VALUE_SIZE - 1);
}

static void refused(const char *text, const char *why)
{
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(err, why);
}

static void a_wrong_setting_is_named_with_its_line(void **state)
{
	char text[4096] = "labels:\n  rules:\n";

	(void)state;
	refused("labels:\n  set: { 1a: x }\n",
		"k.yaml:2: labels.set.1a: must be the name of a label: a letter or _, then "
		"letters, digits, _ . - and /; not \"1a\"");
	refused("labels:\n  set: { a: \"\" }\n", "k.yaml:2: labels.set: a: must not be empty");
	refused("labels:\n  set: { a: b, a: c }\n",
		"k.yaml:2: labels.set: a: is set a second time");
	refused("labels:\n  set: { a: [b] }\n", "k.yaml:2: labels.set.a: takes one value");
	refused("labels:\n  set: x\n", "k.yaml:2: labels.set: must be a map of labels, { team: "
				       "shop }");
	refused("labels: { rules: [ { forget: x } ] }",
		"k.yaml:1: labels.rules[0].forget: must be one rule: set: { label: value }, "
		"rename: { old: "
		"new }, drop: label or replace: { label: x, regex: x, with: x }, and where: { label: "
		"value } if not for all");
	refused("labels: { rules: [ { replace: { label: a, regex: \"(\" } } ] }",
		"k.yaml:1: labels.rules[0].replace.regex: is not a regular expression: Unmatched "
		"( or "
		"\\(; \"(\"");
	refused("labels: { rules: [ { replace: { label: a, regex: '(a)\\1' } } ] }",
		"k.yaml:1: labels.rules[0].replace.regex: cannot refer to a group of its own, as \\1 "
		"does");
	refused("labels: { rules: [ { replace: { label: a, regex: '((a{99}){99}){99}' } } ] }",
		"k.yaml:1: labels.rules[0].replace.regex: repeats more than 1000 times");
	refused("labels: { rules: [ { replace: { label: a, regexp: x } } ] }",
		"k.yaml:1: labels.rules[0].replace.regexp: there is no such key; the keys are "
		"label, regex and with");
	refused("labels: { rules: [ { set: { a: b, c: d } } ] }",
		"k.yaml:1: labels.rules[0].set: takes one pair; others are rules of their own");
	refused("labels: { rules: [ { rename: { a: \"b c\" } } ] }",
		"k.yaml:1: labels.rules[0].rename: must be the name of a label: a letter or _, "
		"then letters, digits, _ . - and /; not \"b c\"");
	refused("labels: { cloud: on }", "k.yaml:1: labels.cloud: is one of off, auto; not \"on\"");
	assert_int_equal(parse("labels: { rules: [ { where: { a: b } } ] }"), -EINVAL);
	assert_int_equal(parse("labels: { rules: [ { drop: a, rename: { a: b } } ] }"), -EINVAL);
	assert_int_equal(parse("labels: { rules: [ drop ] }"), -EINVAL);
	for (int i = 0; i <= LABEL_RULES_MAX; i++)
		strcat(text, "  - drop: x\n");
	refused(text, "k.yaml:35: labels.rules[32]: at most 32 rules are allowed");
}

static void rules_are_written_as_they_are_read(void **state)
{
	static const char *const rules[] = {
		"{ set: { team: \"a \\\"b\\\"\" } }",
		"{ rename: { a: \"b\" }, where: { name: \"x*\", pod: \"y\" } }",
		"{ replace: { label: \"a\", regex: \"^x\\\\.\", with: \"\" } }",
		"{ drop: \"i*\", where: { name: \"x\" } }",
	};
	char text[4096] = "labels:\n  set: { team: \"x\", app: \"y\" }\n  rules:\n";

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		sprintf(text + strlen(text), "    - %s\n", rules[i]);
	if (parse(text) < 0)
		fail_msg("%s", err);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(config_label_rule(&config, i, text, sizeof(text)), rules[i]);
	assert_int_equal(config.n_labels, 2);
	assert_string_equal(config_label(&config, 1, text, sizeof(text)), "app: \"y\"");
	assert_int_equal(parse("labels:\n  set:\n  rules:\n  threads: false\n  cloud: auto\n"), 0);
	assert_false(config.label_threads);
	assert_true(config.label_cloud);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_label_is_found_again_whatever_the_order, set_up),
		cmocka_unit_test_setup(a_value_cannot_pretend_to_be_two_labels, set_up),
		cmocka_unit_test_setup(long_values_are_cut_and_overflow_is_counted, set_up),
		cmocka_unit_test(text_of_somebody_else_is_read_without_harm),
		cmocka_unit_test(each_kind_of_rule_does_what_it_says),
		cmocka_unit_test(a_rule_is_for_those_that_fit_alone),
		cmocka_unit_test(endless_values_are_cut),
		cmocka_unit_test(a_wrong_setting_is_named_with_its_line),
		cmocka_unit_test(rules_are_written_as_they_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
