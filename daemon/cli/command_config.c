/* kindling config: checks a file of settings, and makes the running kindlingd read its own
 * again. */
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/core/config.h"

static const struct usage_row options[] = {
	COMMAND_WORD(
		"check", "FILE",
		"checks whether FILE (YAML) is valid as the settings of kindlingd, names the line "
		"of an error, and prints all resulting settings, defaults included"),
	COMMAND_WORD(
		"reload", NULL,
		"makes the running kindlingd read its settings file again, as SIGHUP does, and "
		"prints what changed and when each change takes effect: at once, for JVMs "
		"attached to from now on, or after a restart. A file with an error is refused, "
		"and the old settings stay in force"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_config = {
	"config",
	"check a settings file, or make kindlingd read its own again",
	"kindling config check FILE | kindling config reload",
	"Checks a settings file, or makes kindlingd read its own again.",
	options,
	NULL,
	"kindling config check /etc/kindling/kindlingd.yaml\n"
	"kindling config reload",
};

static void print_rules(const struct config *config)
{
	char text[2048];

	fputs(config->n_rules ? "targets.rules:\n" : "targets.rules: none\n", stdout);
	for (unsigned i = 0; i < config->n_rules; i++) {
		fputs("  - ", stdout);
		print_text(stdout, config_rule(config, i, text, sizeof(text)));
		putchar('\n');
	}
}

static void print_labels(const struct config *config)
{
	char text[4096];

	fputs(config->n_labels ? "labels.set:\n" : "labels.set: none\n", stdout);
	for (unsigned i = 0; i < config->n_labels; i++) {
		fputs("  ", stdout);
		print_text(stdout, config_label(config, i, text, sizeof(text)));
		putchar('\n');
	}
	fputs(config->n_label_rules ? "labels.rules:\n" : "labels.rules: none\n", stdout);
	for (unsigned i = 0; i < config->n_label_rules; i++) {
		fputs("  - ", stdout);
		print_text(stdout, config_label_rule(config, i, text, sizeof(text)));
		putchar('\n');
	}
}

static void command_config_print_sinks(const struct config *config)
{
	char text[2048];

	fputs(config->n_sinks ? "sinks:\n" : "sinks: none\n", stdout);
	for (unsigned i = 0; i < config->n_sinks; i++) {
		fputs("  - ", stdout);
		print_text(stdout, config_sink_text(&config->sinks[i], text, sizeof(text)));
		putchar('\n');
	}
}

static void print_settings(const struct config *config)
{
	char value[CONFIG_VALUE_MAX];
	const char *name;

	printf("events collected: %s\n", config_events(config, value, sizeof(value)));
	for (size_t i = 0; (name = config_field(i, NULL)); i++) {
		printf("%s: ", name);
		print_text(stdout, config_value(config, i, value, sizeof(value)));
		putchar('\n');
	}
	print_labels(config);
	print_rules(config);
	command_config_print_sinks(config);
}

static int command_config_check(const char *file)
{
	static struct config config;
	char error[512];

	config_defaults(&config);
	if (config_load(&config, file, error, sizeof(error)) < 0) {
		print_text(stderr, error);
		fputc('\n', stderr);
		return CLI_FAILED;
	}
	print_text(stdout, file);
	puts(" is fine");
	print_settings(&config);
	return CLI_OK;
}

static void print_change(const cJSON *change)
{
	static const struct {
		const char *when, *sentence;
	} sentences[] = {
		{ "now", "in force now" },
		{ "next attach", "for JVMs that are attached to from now on" },
		{ "restart", "NOT in force before kindlingd starts again" },
	};
	const char *when = json_text_of(change, "when");

	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (strcmp(when, sentences[i].when) == 0)
			when = sentences[i].sentence;
	print_text(stdout, json_text_of(change, "name"));
	fputs(": ", stdout);
	print_text(stdout, json_text_of(change, "from"));
	fputs(" -> ", stdout);
	print_text(stdout, json_text_of(change, "to"));
	printf(" (%s)\n", when);
}

static int command_config_reload(void)
{
	const cJSON *change;
	struct reply reply;
	cJSON *json;
	int r = client_request("POST", "/v1/settings/reload", &reply);

	if (r != CLI_OK) {
		if (r == CLI_FAILED)
			fputs("kindling: the old settings stay in force\n", stderr);
		return r;
	}
	json = reply_json(&reply);
	reply_free(&reply);
	if (!json)
		return CLI_FAILED;
	if (!cJSON_GetArraySize(json_get(json, "changed")))
		puts("nothing has changed");
	cJSON_ArrayForEach(change, json_get(json, "changed")) print_change(change);
	cJSON_Delete(json);
	return CLI_OK;
}

int command_config(int argc, char **argv)
{
	int r = cli_parse(&usage_config, argc, argv, NULL);
	char **words = argv + optind;

	if (r >= 0)
		return r;
	argc -= optind;
	if (argc == 2 && strcmp(words[0], "check") == 0)
		return command_config_check(words[1]);
	if (argc == 1 && strcmp(words[0], "reload") == 0)
		return command_config_reload();
	return cli_usage(&usage_config, USAGE_WRONG);
}
