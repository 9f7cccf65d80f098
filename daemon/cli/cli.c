/* kindling: the commands, as a table. */
#include "daemon/cli/cli.h"

#include <getopt.h>
#include <string.h>
#include "daemon/core/config.h"
#include "daemon/core/mem.h"

static const struct {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "status", "every JVM: what it is, whether it is profiled, how many samples",
	  command_status },
	{ "top", "the methods that use the most CPU time, live", command_top },
	{ "tail", "samples, or waits for locks, as they happen, one on a line", command_tail },
	{ "locks", "the locks that threads wait for, who blocks whom, deadlocks", command_locks },
	{ "threads", "every thread: its name, what it does, its CPU time and waiting",
	  command_threads },
	{ "report", "a flame graph (or pprof, text, ...) of the last minutes", command_report },
	{ "convert", "a file of a profile in another format", command_convert },
	{ "history", "what the history has: JVMs, times, samples, bytes", command_history },
	{ "record", "record one JVM for some seconds, also without kindlingd", command_record },
	{ "attach", "start profiling one JVM now", command_attach },
	{ "detach", "stop profiling one JVM, and remove the agent from it", command_detach },
	{ "doctor", "can a JVM be profiled? If not: why, and what to do", command_doctor },
	{ "clickhouse", "the tables of a whole cluster's profiles in ClickHouse",
	  command_clickhouse },
	{ "config", "check a settings file, or have kindlingd read its own again", command_config },
	{ "sink", "send a small profile to a sink, and say what it answers", command_sink },
};

int cli_usage(const char *usage, int c)
{
	if (c == 'h') {
		fputs(usage, stdout);
		return CLI_OK;
	}
	/* what is wrong stands above, and is not to be looked for */
	fprintf(stderr, "%.*s\nMore with --help.\n", (int)strcspn(usage, "\n"), usage);
	return CLI_USAGE;
}

int cli_wrong(const char *command, const char *what)
{
	fprintf(stderr, "kindling %s: %s; see kindling %s --help\n", command, what, command);
	return CLI_USAGE;
}

static void print_usage(FILE *to)
{
	fputs("Usage: kindling [--socket PATH] COMMAND [ARGUMENT...]\n\n"
	      "Shows what kindlingd, the profiler of all JVMs on this host, has recorded, and controls it.\n\nCommands:\n",
	      to);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("  version    print the version\n"
	      "  help       show this text, or the help of a command: kindling help record\n\n"
	      "The socket of kindlingd is --socket PATH, else $KINDLING_SOCKET, else /run/kindling/kindling.sock.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage, 3 kindlingd does not answer.\n\n"
	      "Examples: kindling status\n"
	      "          kindling report --all --last 5m -o flame.html\n",
	      to);
}

/* --socket may stand before or behind the command; it is taken out. false = without its PATH. */
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

static int run(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		optind = 0; /* anew, also when somebody parsed before */
		return commands[i].run(argc, argv);
	}
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
	if (strcmp(word, "help") == 0 && argc > 2) {
		char help[] = "--help", *words[] = { argv[2], help, NULL };

		return run(argv[2], 2, words);
	}
	if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		print_usage(stdout);
		return CLI_OK;
	}
	if (argc > 1 && word[0] != '-')
		return run(word, argc - 1, argv + 1);
	print_usage(stderr);
	return CLI_USAGE;
}
