/*
 * kindling-inject as a command for users: it attaches as jattach does, but checks first that
 * SIGQUIT cannot end the target.
 *   kindling-inject PID load LIBRARY [OPTIONS]
 *   kindling-inject PID jcmd COMMAND...
 *   kindling-inject PID properties | threaddump
 *   kindling-inject PID check [json]
 *   kindling-inject filters [SOCKET]     (a service: filters.h)
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/utf8.h"
#include "injector/command_line.h"
#include "injector/inject.h"

#define HELP_WIDTH 100
#define JCMD_MAX   (ATTACH_REQUEST_MAX / 2)

int commands_help(bool wrong)
{
	usage_print(wrong ? stderr : stdout, &usage_inject, HELP_WIDTH);
	return wrong ? 2 : 0;
}

int commands_wrong(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fputs("kindling-inject: ", stderr);
	vfprintf(stderr, format, list);
	fputs("; see kindling-inject --help\n", stderr);
	va_end(list);
	return -1;
}

/* Prints a JVM's reply to a terminal. Control characters other than newline and tab are escaped:
 * a terminal would act on them. */
static void print_safe(FILE *to, const char *s)
{
	size_t left = strlen(s), n;
	uint32_t code;

	for (; left; s += n, left -= n) {
		n = utf8_character(s, left, &code);
		if (n && (!utf8_is_control(code) || *s == '\n' || *s == '\t')) {
			fwrite(s, 1, n, to);
			continue;
		}
		n = n ? n : 1;
		for (size_t i = 0; i < n; i++)
			fprintf(to, "\\x%02x", (unsigned char)s[i]);
	}
}

static int print_reply(const char *reply)
{
	const char *text = strchr(reply, '\n');
	long code = strtol(reply, NULL, 10);

	print_safe(stdout, text ? text + 1 : reply);
	return code == 0 ? 0 : 1;
}

static int commands_join(char *dst, size_t size, char **words)
{
	size_t len = 0;

	dst[0] = '\0';
	for (; *words; words++) {
		len += (size_t)snprintf(dst + len, size - len, "%s%s", len ? " " : "", *words);
		if (len >= size)
			return -E2BIG;
	}
	return 0;
}

static int commands_check(struct inject *in, char **argv)
{
	struct fault f = { 0 };
	bool json = false;

	for (char **word = argv + 1; *word; word++) {
		if (strcmp(*word, "json") == 0) {
			json = true;
		} else if (strcmp(*word, "read-seccomp") == 0) {
			in->reads_seccomp = true;
		} else if (strcmp(*word, "over_tmp=1") == 0) {
			in->may_cover = true;
		} else {
			commands_wrong("check does not know the word %.40s", *word);
			return 2;
		}
	}
	in->fault = &f;
	in->loads = in->only_checks = true;
	if (inject_open(in) < 0) {
		check_report_unopened(json, f.step == FAULT_NAMESPACE ? "access" : "process", &f);
		if (f.step != FAULT_NAMESPACE || in->proc_dfd < 0)
			return 1;
	}
	return check_all(in, json);
}

/* Turns the command into words of the attach protocol. Returns 0, or -1 after printing what is
 * wrong. */
static int commands_translate(struct inject *in, char **argv, const char *words[4])
{
	static char joined[JCMD_MAX];

	words[0] = argv[0];
	if (strcmp(argv[0], "load") == 0) {
		if (!argv[1] || (argv[2] && argv[3]))
			return commands_wrong("load takes a LIBRARY, and OPTIONS as one word");
		in->loads = true;
		words[1] = argv[1];
		words[2] = argv[1][0] == '/' ? "true" : "false";
		words[3] = argv[2];
	} else if (strcmp(argv[0], "jcmd") == 0) {
		if (!argv[1])
			return commands_wrong("jcmd takes a COMMAND, such as VM.version or help");
		if (commands_join(joined, sizeof(joined), argv + 1) < 0)
			return commands_wrong("the command is longer than %zu bytes",
					      sizeof(joined));
		words[1] = joined;
	} else if (strcmp(argv[0], "properties") != 0 && strcmp(argv[0], "threaddump") != 0) {
		return commands_wrong("%.40s is not a command", argv[0]);
	} else if (argv[1]) {
		return commands_wrong("%s takes no argument", argv[0]);
	}
	return 0;
}

int commands_run(struct inject *in, char **argv)
{
	static char reply[INJECT_REPLY_MAX];
	const char *words[4] = { NULL, NULL, NULL, NULL };
	static struct fault f;
	int r;

	in->fault = &f;
	if (!argv[0]) {
		commands_wrong("a COMMAND is missing");
		return 2;
	}
	if (strcmp(argv[0], "check") == 0)
		return commands_check(in, argv);
	if (commands_translate(in, argv, words) < 0)
		return 2;
	r = inject_prepare(in);
	if (r == 0)
		r = cover_begin(in);
	if (r >= 0)
		r = attach_command(in, words, reply, sizeof(reply));
	cover_end(in);
	if (r == 0 && strcmp(argv[0], "load") == 0)
		r = reply_check_load(reply, &f);
	if (r < 0) {
		fprintf(stderr, "kindling-inject: %s: ", fault_step_name(f.step));
		print_safe(stderr, f.what);
		fputc('\n', stderr);
		return 1;
	}
	return print_reply(reply);
}
