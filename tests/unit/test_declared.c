/* Names that a JVM's owner declares in its options and environment. */
#include "tests/unit/unit.h"
#include "daemon/discovery/declared.h"

static struct declared declared;

/* @words and @variables: entries that each end in NUL. */
#define READ(words, variables) \
	declared_read(words, sizeof(words) - 1, variables, sizeof(variables) - 1, &declared)

static void the_best_source_of_the_service_counts(void **state)
{
#define AGENT "-javaagent:/sw/skywalking-agent.jar=agent.namespace=n,agent.service_name=agent\0"
#define END   "org.shop.Main\0-Dotel.service.name=argument\0"

	(void)state;
	READ("java\0" AGENT "-Dskywalking.agent.service_name=sw\0-Dotel.service.name=otel\0" END,
	     "OTEL_SERVICE_NAME=variable\0OTEL_RESOURCE_ATTRIBUTES=service.name=a\0SW_AGENT_NAME=s\0");
	assert_string_equal(declared.service, "otel");
	READ("java\0" AGENT END, "SW_AGENT_NAME=s\0OTEL_RESOURCE_ATTRIBUTES=x=1,service.name=a\0"
				 "OTEL_SERVICE_NAME=variable\0OTEL_SERVICE_NAME=second\0");
	assert_string_equal(declared.service, "variable");
	READ("java\0" AGENT END, "SW_AGENT_NAME=s\0OTEL_RESOURCE_ATTRIBUTES=x=1,service.name=a\0");
	assert_string_equal(declared.service, "a");
	READ("java\0" AGENT "-Dskywalking.agent.service_name=sw\0" END, "SW_AGENT_NAME=s\0");
	assert_string_equal(declared.service, "agent");
	READ("java\0-Dskywalking.agent.service_name=sw\0" END, "SW_AGENT_NAME=s\0");
	assert_string_equal(declared.service, "sw");
	READ("java\0-javaagent:/other.jar=agent.service_name=x\0" END, "SW_AGENT_NAME=s\0");
	assert_string_equal(declared.service, "s");
	READ("java\0" END, "");
	assert_string_equal(declared.service, "");
}

static void other_tracers_count_after_skywalking(void **state)
{
	(void)state;
	READ("java\0-Dnewrelic.config.app_name=relic\0Main\0",
	     "ELASTIC_APM_SERVICE_NAME=elastic\0DD_SERVICE=dog\0SW_AGENT_NAME=s\0");
	assert_string_equal(declared.service, "s");
	READ("java\0-Ddd.service=dog\0-Dnewrelic.config.app_name=relic\0Main\0",
	     "ELASTIC_APM_SERVICE_NAME=elastic\0DD_SERVICE=variable\0");
	assert_string_equal(declared.service, "dog");
	READ("java\0-Delastic.apm.service_name=elastic\0-Dnewrelic.config.app_name=relic\0Main\0",
	     "");
	assert_string_equal(declared.service, "elastic");
	READ("java\0", "NEW_RELIC_APP_NAME=relic\0");
	assert_string_equal(declared.service, "relic");
	READ("java\0-Ddd.version=1\0-Delastic.apm.environment=stage\0",
	     "DD_VERSION=2\0DD_ENV=prod\0ELASTIC_APM_SERVICE_VERSION=3\0");
	assert_string_equal(declared.version, "1");
	assert_string_equal(declared.environment, "prod");
	READ("java\0", "DD_VERSION=2\0DD_ENV=prod\0"
		       "OTEL_RESOURCE_ATTRIBUTES=service.version=4,deployment.environment=old\0");
	assert_string_equal(declared.version, "4");
	assert_string_equal(declared.environment, "old");
}

static void a_framework_names_its_application(void **state)
{
	(void)state;
	READ("java\0-Dspring.application.name=option\0-jar\0shop.jar\0"
	     "--spring.application.name=argument\0",
	     "SPRING_APPLICATION_NAME=variable\0");
	assert_string_equal(declared.application, "argument");
	assert_string_equal(declared.service, "");
	READ("java\0-Dspring.application.name=option\0-jar\0shop.jar\0",
	     "SPRING_APPLICATION_NAME=variable\0");
	assert_string_equal(declared.application, "option");
	READ("java\0-jar\0shop.jar\0", "QUARKUS_APPLICATION_NAME=q\0SPRING_APPLICATION_NAME=v\0");
	assert_string_equal(declared.application, "v");
	READ("java\0-Dquarkus.application.name=q\0-jar\0quarkus-run.jar\0",
	     "MICRONAUT_APPLICATION_NAME=m\0");
	assert_string_equal(declared.application, "q");
	READ("java\0-jar\0shop.jar\0", "MICRONAUT_APPLICATION_NAME=m\0");
	assert_string_equal(declared.application, "m");
}

static void attributes_are_read_as_opentelemetry_writes_them(void **state)
{
	(void)state;
	READ("java\0", "OTEL_RESOURCE_ATTRIBUTES=service.name=my%2Cshop%20%zz, service.version = 1,"
		       "service.version=1.2,service.namespace=eu,deployment.environment=old,"
		       "deployment.environment.name=prod,service.name.x=y\0");
	assert_string_equal(declared.service, "my,shop %zz");
	assert_string_equal(declared.version, "1.2");
	assert_string_equal(declared.namespace, "eu");
	assert_string_equal(declared.environment, "prod");
	/* the option replaces the variable */
	READ("java\0-Dotel.resource.attributes=service.version=3\0Main\0",
	     "OTEL_RESOURCE_ATTRIBUTES=service.name=shop\0");
	assert_string_equal(declared.service, "");
	assert_string_equal(declared.version, "3");
}

static void options_in_variables_are_read_too(void **state)
{
	(void)state;
	READ("java\0Main\0", "JAVA_TOOL_OPTIONS=-Xmx1g '-Dotel.service.name=my shop' -Dx=\"\0");
	assert_string_equal(declared.service, "my shop");
	READ("java\0-Dotel.service.name=a b\0Main\0", "JAVA_TOOL_OPTIONS=-Dotel.service.name=t\0"
						      "_JAVA_OPTIONS=\0");
	assert_string_equal(declared.service, "a b"); /* the later one */
	READ("java\0-Dotel.service.name=a\0Main\0", "_JAVA_OPTIONS=-Dotel.service.name=last\0");
	assert_string_equal(declared.service, "last");
}

static void a_hostile_value_is_cut_or_none(void **state)
{
	static char variables[4200] = "OTEL_SERVICE_NAME=";

	(void)state;
	READ("java\0", "OTEL_SERVICE_NAME=a\x1b[2J\0SW_AGENT_NAME=s\0");
	assert_string_equal(declared.service, "s");
	READ("java\0", "OTEL_RESOURCE_ATTRIBUTES=service.name=a%0Ab,service.version=%00\0");
	assert_string_equal(declared.service, "");
	assert_string_equal(declared.version, "");
	READ("java\0", "OTEL_SERVICE_NAME=  a\xff\xc2\x80  \0");
	assert_string_equal(declared.service, "a???");
	memset(variables + strlen(variables), 'x', 4000);
	declared_read("java", 5, variables, strlen(variables) + 1, &declared);
	assert_int_equal(strlen(declared.service), sizeof(declared.service) - 1);
	READ("java\0", "OTEL_SERVICE_NAME=\0OTEL_RESOURCE_ATTRIBUTES=,,=,service.name\0");
	assert_string_equal(declared.service, "");
	declared_read(NULL, 0, NULL, 0, &declared); /* neither could be read */
	assert_string_equal(declared.service, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_source_of_the_service_counts),
		cmocka_unit_test(other_tracers_count_after_skywalking),
		cmocka_unit_test(a_framework_names_its_application),
		cmocka_unit_test(attributes_are_read_as_opentelemetry_writes_them),
		cmocka_unit_test(options_in_variables_are_read_too),
		cmocka_unit_test(a_hostile_value_is_cut_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
