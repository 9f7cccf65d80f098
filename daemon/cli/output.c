/* Files and cells. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/cli/cli.h"
#include "daemon/core/mem.h"
#include "daemon/report/report.h"

volatile int cli_interrupted;

static void on_interrupt(int signo)
{
	(void)signo;
	cli_interrupted = 1;
}

void cli_catch_interrupt(void)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int write_file(const char *path, const char *bytes, size_t len)
{
	char temp[4096];
	bool failed;
	FILE *f;

	if (strcmp(path, "-") == 0)
		return fwrite(bytes, 1, len, stdout) == len && fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
	snprintf(temp, sizeof(temp), "%s.%d.tmp", path, (int)getpid());
	f = fopen(temp, "wx");
	if (!f) {
		fprintf(stderr, "kindling: %s: %s\n", temp, strerror(errno));
		return CLI_FAILED;
	}
	failed = fwrite(bytes, 1, len, f) != len;
	failed |= fclose(f) != 0;
	if (failed || rename(temp, path) < 0) {
		fprintf(stderr, "kindling: %s: %s\n", path, strerror(errno));
		(void)unlink(temp);
		return CLI_FAILED;
	}
	return CLI_OK;
}

const char *format_of(const char *format, const char *path)
{
	static const char *const names[] = { "html", "collapsed", "txt", "pb.gz", "json" };
	int f;

	if (format)
		f = report_format_by_name(format);
	else
		f = strcmp(path, "-") == 0 ? REPORT_TXT : report_format_by_path(path);
	if (f >= 0)
		return names[f];
	fprintf(stderr, "kindling: the format of %s is not known: use .html, .collapsed, .txt, .pb.gz, .json or --format\n",
		format ? format : path);
	return NULL;
}

void print_cell(const char *s, int width, bool pad)
{
	int columns = 0;

	for (; *s && columns < width; s++) {
		unsigned char c = (unsigned char)*s;

		if (columns == width - 1 && s[1] && (s[1] & 0xc0) != 0x80) {
			fputs("…", stdout);
			columns++;
			break;
		}
		putchar(c < 0x20 || c == 0x7f ? '?' : c);
		if ((s[1] & 0xc0) != 0x80) /* the last byte of a character */
			columns++;
	}
	for (; pad && columns < width; columns++)
		putchar(' ');
}

const char *json_text(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

double json_number(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(v) ? v->valuedouble : 0;
}
