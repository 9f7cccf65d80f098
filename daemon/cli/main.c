/* kindling: the commands, as a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/core/config.h"

static int command_config(int argc, char **argv);

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "status", "every JVM: who it is, whether it streams, and its books", command_status },
	{ "top", "the hottest methods of the last seconds, live", command_top },
	{ "tail", "samples as they arrive, one line each", command_tail },
	{ "report", "a flame graph (or pprof, text, ...) of the last minutes", command_report },
	{ "record", "one JVM for some seconds, also without a daemon", command_record },
	{ "config", "config check FILE: is it what kindlingd would take?", command_config },
};

static void print_usage(FILE *to)
{
	fputs("Usage: kindling [--socket PATH] COMMAND [ARGUMENT...]\n\n"
	      "Looks at what kindlingd, the profiler of all JVMs of this host, sees.\n\nCommands:\n",
	      to);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\n`kindling COMMAND --help` says more.\n"
	      "The socket is --socket, else $KINDLING_SOCKET, else /run/kindling/kindling.sock.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 no daemon answers.\n",
	      to);
}

static int command_config(int argc, char **argv)
{
	struct config config;
	char error[512];

	if (argc != 3 || strcmp(argv[1], "check") != 0) {
		fputs("Usage: kindling config check FILE\n", argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
		return argc > 1 && strcmp(argv[1], "--help") == 0 ? CLI_OK : CLI_USAGE;
	}
	config_defaults(&config);
	if (config_load(&config, argv[2], error, sizeof(error)) < 0) {
		fprintf(stderr, "%s\n", error);
		return CLI_FAILED;
	}
	printf("%s is fine\n", argv[2]);
	return CLI_OK;
}

int main(int argc, char **argv)
{
	static struct config defaults;

	config_defaults(&defaults);
	cli_socket = defaults.socket;
	while (argc > 1 && argv[1][0] == '-') {
		if (strcmp(argv[1], "--socket") == 0 && argc > 2) {
			cli_socket = argv[2];
			argc--;
			argv++;
		} else if (strcmp(argv[1], "--version") == 0) {
			puts("kindling " KINDLING_VERSION);
			return CLI_OK;
		} else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
			print_usage(stdout);
			return CLI_OK;
		} else {
			break;
		}
		argc--;
		argv++;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "help") == 0) {
		print_usage(stdout);
		return CLI_OK;
	}
	if (argc > 1)
		fprintf(stderr, "kindling: %s is not a command\n\n", argv[1]);
	print_usage(stderr);
	return CLI_USAGE;
}
