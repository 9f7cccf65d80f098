/*
 * Part of the build, not installed: writes manual pages and completions into a directory, with the
 * layout of share.
 *
 * kindling-manual DIRECTORY kindlingd.yaml
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/cli/manual.h"
#include "daemon/ground/mem.h"
#include "daemon/options.h"
#include "injector/command_line.h"

static const struct manual_program programs[] = {
	{ &usage_kindling, 1, cli_commands, false,
	  "KINDLING_SOCKET\tthe socket of kindlingd, where --socket is not given\n"
	  "NO_COLOR\tif it is set, and not empty: no colours\n"
	  "CLICKHOUSE_USER, CLICKHOUSE_PASSWORD, CLICKHOUSE_PASSWORD_FILE\tfor --source",
	  "/run/kindling/kindling.sock\tthe socket; root and the group kindling may use it",
	  "kindlingd(8), kindlingd.yaml(5), kindling-inject(8)" },
	{ &usage_kindlingd, 8, NULL, false,
	  "KINDLING_SOCKET\tchanges the default of `socket`\n"
	  "NODE_NAME\tthe label `node` (default: the name of the host)\n"
	  "NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM\tset by systemd",
	  "/etc/kindling/kindlingd.yaml\tits settings, as the service starts it\n"
	  "/run/kindling/kindling.sock\tthe socket for `kindling` and Prometheus\n"
	  "/var/lib/kindling\tthe history, names of native functions, what sinks have not delivered yet",
	  "kindling(1), kindlingd.yaml(5), kindling-inject(8)" },
	{ &usage_inject, 8, NULL, true, NULL, NULL, "kindling(1), kindlingd(8)" },
};

static FILE *manual_open(const char *directory, const char *path)
{
	char full[1024];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", directory, path);
	for (char *p = strchr(full + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
	f = fopen(full, "we");
	if (f)
		return f;
	fprintf(stderr, "%s: %s\n", full, strerror(errno));
	exit(1);
}

static void manual_close(FILE *f)
{
	if (ferror(f) || fclose(f) != 0) {
		perror("kindling-manual");
		exit(1);
	}
}

static void manual_of_program(const char *directory, const struct manual_program *p)
{
	const char *name = p->usage->name;
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "man/man%u/%s.%u", p->section, name, p->section);
	f = manual_open(directory, path);
	manual_page(f, p);
	manual_close(f);
	snprintf(path, sizeof(path), "bash-completion/completions/%s", name);
	f = manual_open(directory, path);
	completion_bash(f, p);
	manual_close(f);
	snprintf(path, sizeof(path), "zsh/site-functions/_%s", name);
	f = manual_open(directory, path);
	completion_zsh(f, p);
	manual_close(f);
	snprintf(path, sizeof(path), "fish/vendor_completions.d/%s.fish", name);
	f = manual_open(directory, path);
	completion_fish(f, p);
	manual_close(f);
}

static char *manual_read(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	ssize_t n = f ? getdelim(&text, &size, '\0', f) : -1;

	if (n < 0) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	CLEANUP(freep) char *example = NULL;
	FILE *f;

	if (argc != 3) {
		fputs("Usage: kindling-manual DIRECTORY kindlingd.yaml\n", stderr);
		return 2;
	}
	/* the environment must not change the defaults of settings */
	(void)clearenv();
	example = manual_read(argv[2]);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		manual_of_program(argv[1], &programs[i]);
	f = manual_open(argv[1], "man/man5/kindlingd.yaml.5");
	manual_settings(f, example);
	manual_close(f);
	f = manual_open(argv[1], "man/man5/kindling.yaml.5");
	fputs(".so man5/kindlingd.yaml.5\n", f);
	manual_close(f);
	return 0;
}
