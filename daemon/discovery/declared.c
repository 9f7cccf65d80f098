/* See declared.h. */
#include "daemon/discovery/declared.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "daemon/ground/java_options.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

#define WORD_SIZE	1024 /* the rest of a longer option is ignored */
#define ATTRIBUTES_SIZE 4096

/* Where names may be declared; of those for the same name the first is preferred. */
enum declared_source {
	SERVICE_OTEL,
	SERVICE_ATTRIBUTE, /* of OpenTelemetry's resource */
	SERVICE_SKYWALKING_AGENT, /* an option of skywalking-agent.jar */
	SERVICE_SKYWALKING,
	SERVICE_DATADOG,
	SERVICE_ELASTIC,
	SERVICE_NEW_RELIC,
	SERVICE_END,

	APPLICATION_SPRING_ARGUMENT = SERVICE_END,
	APPLICATION_SPRING,
	APPLICATION_QUARKUS,
	APPLICATION_MICRONAUT,
	APPLICATION_END,

	VERSION_DATADOG = APPLICATION_END,
	VERSION_ELASTIC,
	VERSION_END,

	ENVIRONMENT_DATADOG = VERSION_END,
	ENVIRONMENT_ELASTIC,
	ENVIRONMENT_END,

	SOURCE_COUNT = ENVIRONMENT_END
};

/* An option of the JVM, and the variable that counts where the option is not given. */
static const struct {
	const char *option, *variable;
} sources[SOURCE_COUNT] = {
	[SERVICE_OTEL] = { "-Dotel.service.name=", "OTEL_SERVICE_NAME=" },
	[SERVICE_SKYWALKING] = { "-Dskywalking.agent.service_name=", "SW_AGENT_NAME=" },
	[SERVICE_DATADOG] = { "-Ddd.service=", "DD_SERVICE=" },
	[SERVICE_ELASTIC] = { "-Delastic.apm.service_name=", "ELASTIC_APM_SERVICE_NAME=" },
	[SERVICE_NEW_RELIC] = { "-Dnewrelic.config.app_name=", "NEW_RELIC_APP_NAME=" },
	[APPLICATION_SPRING] = { "-Dspring.application.name=", "SPRING_APPLICATION_NAME=" },
	[APPLICATION_QUARKUS] = { "-Dquarkus.application.name=", "QUARKUS_APPLICATION_NAME=" },
	[APPLICATION_MICRONAUT] = { "-Dmicronaut.application.name=",
				    "MICRONAUT_APPLICATION_NAME=" },
	[VERSION_DATADOG] = { "-Ddd.version=", "DD_VERSION=" },
	[VERSION_ELASTIC] = { "-Delastic.apm.service_version=", "ELASTIC_APM_SERVICE_VERSION=" },
	[ENVIRONMENT_DATADOG] = { "-Ddd.env=", "DD_ENV=" },
	[ENVIRONMENT_ELASTIC] = { "-Delastic.apm.environment=", "ELASTIC_APM_ENVIRONMENT=" },
};

struct declaring {
	const char *cmdline;
	char values[SOURCE_COUNT][sizeof(((struct declared *)0)->service)];
	char attributes[ATTRIBUTES_SIZE]; /* the resource attributes of the option */
};

/* Copies a value of @len bytes, without the blanks around it; "" if it is not valid. */
static void declared_copy(char *ret, size_t size, const char *value, size_t len)
{
	for (; len && *value == ' '; len--)
		value++;
	while (len && value[len - 1] == ' ')
		len--;
	ret[0] = '\0';
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return;
	utf8_copy(ret, size, value, len);
}

/* ---- resource attributes: "service.name=shop,service.version=1%2C2" --------------------- */

static int declared_hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = memchr(digits, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c, 16);

	return at ? (int)(at - digits) : -1;
}

/* Decodes %2C and the like, as in W3C's baggage; a % before anything else stays. Returns the
 * length. */
static size_t declared_unescape(char *dst, const char *src, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int high = src[i] == '%' && i + 2 < len ? declared_hex(src[i + 1]) : -1;
		int low = high >= 0 ? declared_hex(src[i + 2]) : -1;

		dst[n++] = low >= 0 ? (char)(high << 4 | low) : src[i];
		i += low >= 0 ? 2 : 0;
	}
	return n;
}

/* Copies the value of the attribute @key in @text; @ret is unchanged if there is none. */
static void declared_attribute(const char *text, size_t len, const char *key, char *ret,
			       size_t size)
{
	const char *end = text + len;
	size_t key_len = strlen(key);
	char value[WORD_SIZE];

	while (text < end) {
		const char *comma = memchr(text, ',', (size_t)(end - text));
		const char *stop = comma ? comma : end;

		while (text < stop && *text == ' ')
			text++;
		if ((size_t)(stop - text) > key_len && text[key_len] == '=' &&
		    memcmp(text, key, key_len) == 0) {
			text += key_len + 1;
			len = (size_t)(stop - text) < sizeof(value) ? (size_t)(stop - text)
								    : sizeof(value);
			declared_copy(ret, size, value, declared_unescape(value, text, len));
		}
		text = stop + 1;
	}
}

static void declared_attributes(const char *text, size_t len, struct declaring *t,
				struct declared *ret)
{
	declared_attribute(text, len, "service.name", t->values[SERVICE_ATTRIBUTE],
			   sizeof(t->values[0]));
	declared_attribute(text, len, "service.namespace", ret->namespace, sizeof(ret->namespace));
	declared_attribute(text, len, "service.version", ret->version, sizeof(ret->version));
	declared_attribute(text, len, "deployment.environment", ret->environment,
			   sizeof(ret->environment));
	declared_attribute(text, len, "deployment.environment.name", ret->environment,
			   sizeof(ret->environment));
}

/* ---- options ---------------------------------------------------------------------------- */

/*
 * Copies the next word of a list, which ends at @end, into @word. Words of a command line are
 * separated by NULs, those of a variable by blanks, and quotes are removed. false = there is none.
 */
static bool declared_word(const char **at, const char *end, bool command, char word[WORD_SIZE])
{
	const char *p = *at;
	char quote = '\0';
	size_t n = 0;

	while (!command && p < end && *p && strchr(" \t\n\r\f\v", *p))
		p++;
	if (p >= end)
		return false;
	for (; p < end && *p; p++) {
		if (!command && quote == *p) {
			quote = '\0';
			continue;
		}
		if (!command && !quote && (*p == '"' || *p == '\'')) {
			quote = *p;
			continue;
		}
		if (!command && !quote && strchr(" \t\n\r\f\v", *p))
			break;
		if (n < WORD_SIZE - 1)
			word[n++] = *p;
	}
	word[n] = '\0';
	*at = p + 1;
	return true;
}

/* The text after @prefix in @word; NULL = @word does not begin with it. */
static const char *declared_behind(const char *word, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(word, prefix, len) == 0 ? word + len : NULL;
}

/* Reads what follows "-javaagent:", such as
 * "/x/skywalking-agent.jar=agent.service_name=shop,agent.namespace=eu". */
static void declared_skywalking(const char *agent, struct declaring *t)
{
	static const char key[] = "agent.service_name=";
	const char *options = strchr(agent, '='), *name = strstr(agent, "skywalking-agent");

	if (!options || !name || name > options)
		return;
	for (const char *p = options + 1; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		const char *value = declared_behind(p, key);

		if (value)
			declared_copy(t->values[SERVICE_SKYWALKING_AGENT], sizeof(t->values[0]),
				      value, strcspn(value, ","));
	}
}

static void declared_set(struct declaring *t, enum declared_source source, const char *value)
{
	declared_copy(t->values[source], sizeof(t->values[0]), value, strlen(value));
}

static void declared_option(const char *word, struct declaring *t)
{
	const char *value;

	for (int i = 0; i < SOURCE_COUNT; i++)
		if (sources[i].option && (value = declared_behind(word, sources[i].option)))
			declared_set(t, i, value);
	if ((value = declared_behind(word, "-Dotel.resource.attributes=")))
		memcpy(t->attributes, value, strlen(value) + 1); /* words are shorter than that */
	else if ((value = declared_behind(word, "-javaagent:")))
		declared_skywalking(value, t);
}

static void declared_options(void *userdata, const char *list, size_t len)
{
	struct declaring *t = userdata;
	const char *end = list + len;
	bool command = list == t->cmdline;
	char word[WORD_SIZE];

	while (declared_word(&list, end, command, word))
		declared_option(word, t);
}

/* ---- the environment -------------------------------------------------------------------- */

/* The value of the first of the NUL-separated @entries that begins with @prefix, "NAME=", like
 * getenv(3); NULL = none. */
static const char *declared_variable(const char *entries, size_t len, const char *prefix)
{
	for (const char *p = entries; p < entries + len; p += strlen(p) + 1) {
		const char *value = declared_behind(p, prefix);

		if (value)
			return value;
	}
	return NULL;
}

static void declared_variables(const char *environ, size_t len, struct declaring *t)
{
	const char *value;

	for (int i = 0; i < SOURCE_COUNT; i++)
		if (sources[i].variable && !t->values[i][0] &&
		    (value = declared_variable(environ, len, sources[i].variable)))
			declared_set(t, i, value);
}

/* Copies the first value that is given by one of the sources from @first to before @end. */
static void declared_pick(const struct declaring *t, int first, int end, char *ret, size_t size)
{
	for (int i = first; i < end && !ret[0]; i++)
		utf8_copy(ret, size, t->values[i], strlen(t->values[i]));
}

void declared_read(const char *cmdline, size_t cmdline_len, const char *environ, size_t environ_len,
		   struct declared *ret)
{
	struct declaring t = { .cmdline = cmdline };
	const char *attributes, *argument;

	*ret = (struct declared){ 0 };
	java_options_each(cmdline, cmdline_len, environ, environ_len, declared_options, &t);
	declared_variables(environ, environ_len, &t);
	argument = declared_variable(cmdline, cmdline_len, "--spring.application.name=");
	if (argument)
		declared_set(&t, APPLICATION_SPRING_ARGUMENT, argument);
	attributes = declared_variable(environ, environ_len, "OTEL_RESOURCE_ATTRIBUTES=");
	if (t.attributes[0]) /* the option wins over the variable */
		attributes = t.attributes;
	if (attributes)
		declared_attributes(attributes, strnlen(attributes, ATTRIBUTES_SIZE), &t, ret);
	declared_pick(&t, SERVICE_OTEL, SERVICE_END, ret->service, sizeof(ret->service));
	declared_pick(&t, APPLICATION_SPRING_ARGUMENT, APPLICATION_END, ret->application,
		      sizeof(ret->application));
	declared_pick(&t, VERSION_DATADOG, VERSION_END, ret->version, sizeof(ret->version));
	declared_pick(&t, ENVIRONMENT_DATADOG, ENVIRONMENT_END, ret->environment,
		      sizeof(ret->environment));
}
