/* The table of kindling's commands, and the choice among them. */
#include "daemon/cli/cli.h"

#include <getopt.h>
#include <string.h>
#include "daemon/core/config.h"
#include "daemon/ground/mem.h"

#define HELP_WIDTH 100

const struct cli_command cli_commands[] = {
	{ &usage_status, NULL, command_status },
	{ &usage_top, &usage_source_top, command_top },
	{ &usage_tail, NULL, command_tail },
	{ &usage_locks, &usage_source_locks, command_locks },
	{ &usage_threads, NULL, command_threads },
	{ &usage_timeline, NULL, command_timeline },
	{ &usage_traces, NULL, command_traces },
	{ &usage_report, &usage_source_report, command_report },
	{ &usage_convert, NULL, command_convert },
	{ &usage_history, NULL, command_history },
	{ &usage_record, NULL, command_record },
	{ &usage_attach, NULL, command_attach },
	{ &usage_detach, NULL, command_detach },
	{ &usage_doctor, NULL, command_doctor },
	{ &usage_clickhouse, NULL, command_clickhouse },
	{ &usage_config, NULL, command_config },
	{ &usage_sink, NULL, command_sink },
	{ &usage_metrics, NULL, command_metrics },
	{ &usage_bugreport, NULL, command_bugreport },
	{ &usage_health, NULL, command_health },
	{ NULL, NULL, NULL },
};

static const struct usage_row options[] = {
	OPTION_ELSEWHERE("socket", "PATH",
			 "the socket of kindlingd (default: $KINDLING_SOCKET, else "
			 "/run/kindling/kindling.sock); the option may also follow the command"),
	OPTION_VERSION,
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_kindling = {
	"kindling",
	"shows what the profiler of all JVMs on this host has recorded",
	"kindling [--socket PATH] COMMAND [ARGUMENT...]",
	"Shows what kindlingd, the profiler of all JVMs on this host, has recorded, and controls it.",
	options,
	"Exit status: 0 done, 1 failed, 2 wrong usage, 3 kindlingd does not answer.",
	"kindling status\n"
	"kindling report --all --last 5m -o flame.html",
};

static size_t help_width(void)
{
	size_t width = terminal_width();

	return width < HELP_WIDTH ? width : HELP_WIDTH;
}

int cli_usage(const struct usage *u, enum usage_result result)
{
	if (result == USAGE_SHOW_HELP) {
		usage_print(stdout, u, help_width());
		return CLI_OK;
	}
	/* brief, so that the error above stays in sight */
	usage_print_brief(stderr, u);
	fputs("More with --help.\n", stderr);
	return CLI_USAGE;
}

int cli_parse(const struct usage *u, int argc, char **argv, void *into)
{
	enum usage_result r = usage_parse(u, argc, argv, false, into);

	return r == USAGE_GO_ON ? -1 : cli_usage(u, r);
}

int cli_wrong(const char *command, const char *what)
{
	fprintf(stderr, "kindling %s: %s; see kindling %s --help\n", command, what, command);
	return CLI_USAGE;
}

/* The help of kindling itself, which lists the commands first. */
static void print_usage(FILE *to)
{
	usage_print_brief(to, &usage_kindling);
	fprintf(to, "\n%s\n\nCommands:\n", usage_kindling.about);
	for (const struct cli_command *c = cli_commands; c->usage; c++)
		fprintf(to, "  %-10s %s\n", c->usage->name, c->usage->brief);
	fputs("  version    print the version\n"
	      "  help       show this text, or the help of a command: kindling help record\n\n",
	      to);
	usage_print_end(to, &usage_kindling, help_width());
}

/* Takes --socket PATH out of the arguments; it may precede or follow the command. false = PATH
 * is missing. */
static bool take_socket(int *argc, char **argv)
{
	int to = 1;

	for (int from = 1; from < *argc; from++) {
		if (strcmp(argv[from], "--") == 0) {
			while (from < *argc)
				argv[to++] = argv[from++];
		} else if (strncmp(argv[from], "--socket=", 9) == 0) {
			cli_socket = argv[from] + 9;
		} else if (strcmp(argv[from], "--socket") == 0) {
			if (++from >= *argc)
				return false;
			cli_socket = argv[from];
		} else {
			argv[to++] = argv[from];
		}
	}
	*argc = to;
	argv[to] = NULL;
	return *cli_socket != '\0';
}

static int cli_run(const char *name, int argc, char **argv)
{
	for (const struct cli_command *c = cli_commands; c->usage; c++)
		if (strcmp(name, c->usage->name) == 0)
			return c->run(argc, argv);
	fputs("kindling: unknown command ", stderr);
	print_text(stderr, name);
	fputs("; see kindling --help\n", stderr);
	return CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
	static struct config defaults;
	const char *word;

	config_defaults(&defaults);
	cli_socket = defaults.socket;
	if (!take_socket(&argc, argv)) {
		fputs("kindling: --socket takes a PATH\n", stderr);
		return CLI_USAGE;
	}
	word = argc > 1 ? argv[1] : "";
	if (strcmp(word, "version") == 0 || strcmp(word, "--version") == 0) {
		puts("kindling " KINDLING_VERSION);
		return CLI_OK;
	}
	if (strcmp(word, "help") == 0 && argc == 3 && strcmp(argv[2], "--targets") == 0)
		return cli_targets();
	if (strcmp(word, "help") == 0 && argc > 2) {
		char help[] = "--help", *words[] = { argv[2], help, NULL };

		return cli_run(argv[2], 2, words);
	}
	if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		print_usage(stdout);
		return CLI_OK;
	}
	if (argc > 1 && word[0] != '-')
		return cli_run(word, argc - 1, argv + 1);
	print_usage(stderr);
	return CLI_USAGE;
}
