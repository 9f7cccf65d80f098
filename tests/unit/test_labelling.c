/* Which source of a label takes precedence. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/ground/mem.h"
#include "daemon/target/labelling.h"

static struct config config;
static struct jvm jvm;
static struct declared told;
static struct labels labels;
static char value[LABEL_VALUE_SIZE];

static int set_up(void **state)
{
	(void)state;
	config_defaults(&config);
	strcpy(config.host, "h1");
	strcpy(config.node, "n1");
	told = (struct declared){ 0 };
	jvm = (struct jvm){ .name = "org.shop.Main" };
	return 0;
}

static const char *label(const char *key)
{
	labelling_make(&jvm, &told, &config, &labels);
	return labels_get(labels.text, key, value);
}

static void settings(const char *text)
{
	char err[300];

	if (config_parse(&config, "k.yaml", text, strlen(text), err, sizeof(err)) < 0)
		fail_msg("%s", err);
}

static void the_service_is_the_first_that_is_known(void **state)
{
	(void)state;
	assert_string_equal(label("service"), "org.shop.Main");
	strcpy(jvm.container, "cart");
	assert_string_equal(label("service"), "cart");
	strcpy(told.application, "framework");
	assert_string_equal(label("service"), "framework");
	strcpy(jvm.noted_service, "noted");
	assert_string_equal(label("service"), "noted");
	strcpy(told.service, "told");
	assert_string_equal(label("service"), "told");
	settings("labels: { set: { service: mine } }");
	assert_string_equal(label("service"), "mine");
	settings("labels: { rules: [ { set: { service: ruled }, where: { service: mine } } ] }");
	assert_string_equal(label("service"), "ruled");
}

static void the_version_is_told_noted_or_the_images_tag(void **state)
{
	static const struct {
		const char *image, *tag;
	} images[] = {
		{ "", "" },
		{ "shop", "" },
		{ "reg:5000/shop", "" },
		{ "reg:5000/shop:1.2", "1.2" },
		{ "shop:1@sha256:0123", "1" },
		{ "reg:5000/shop@sha256:0123", "" },
		{ ":", "" },
		{ "@", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
		strcpy(jvm.image, images[i].image);
		assert_string_equal(label("version"), images[i].tag);
	}
	strcpy(jvm.image, "shop:1");
	strcpy(jvm.noted_version, "2");
	assert_string_equal(label("version"), "2");
	strcpy(told.version, "3");
	assert_string_equal(label("version"), "3");
}

static void where_it_runs_is_not_for_the_application_to_say(void **state)
{
	(void)state;
	strcpy(jvm.pod, "shop/cart-7d9");
	strcpy(jvm.container_id, "0123456789ab");
	strcpy(told.namespace, "eu");
	labelling_make(&jvm, &told, &config, &labels);
	assert_string_equal(labels.text, "container=0123456789ab\nhost=h1\nnamespace=eu\nnode=n1\n"
					 "pod=cart-7d9\npod_namespace=shop\n"
					 "service=org.shop.Main\n");
	told.namespace[0] = '\0';
	assert_string_equal(label("namespace"), "shop");
}

static void notes_that_the_settings_name_are_labels(void **state)
{
	(void)state;
	strcpy(jvm.notes, "app=cart\napp.kubernetes.io/part-of=shop\npod=mine\nteam=x\n");
	strcpy(jvm.pod, "ns/theirs");
	assert_string_equal(label("team"), "");
	settings("labels: { pods: \"team, app.kubernetes.io/*,pod\" }");
	assert_string_equal(label("team"), "x");
	assert_string_equal(label("app.kubernetes.io/part-of"), "shop");
	assert_string_equal(label("app"), "");
	assert_string_equal(label("pod"), "theirs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_service_is_the_first_that_is_known, set_up),
		cmocka_unit_test_setup(notes_that_the_settings_name_are_labels, set_up),
		cmocka_unit_test_setup(the_version_is_told_noted_or_the_images_tag, set_up),
		cmocka_unit_test_setup(where_it_runs_is_not_for_the_application_to_say, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
