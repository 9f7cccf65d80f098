/* Files of profiles that a user passes to commands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/utf8.h"

/* Reads a whole file, or stdin for "-". NULL after printing the error. */
static char *read_whole(const char *path, size_t *ret_len)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	CLEANUP(freep) char *bytes = NULL;
	size_t len = 0, cap = 0, n;

	if (!f) {
		fprintf(stderr, "kindling: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	do {
		char *more = realloc(bytes, cap += cap ? cap : 1 << 20);

		n = more ? fread(more + len, 1, cap - len, f) : 0;
		bytes = more ? more : bytes;
		len += n;
	} while (n > 0 && len <= READ_BYTES_MAX);
	if (ferror(f) || len > READ_BYTES_MAX) {
		fprintf(stderr, "kindling: %s: %s\n", path,
			ferror(f) ? strerror(errno) : "the file is too large");
		len = 0;
		free(TAKE_PTR(bytes));
	}
	if (f != stdin)
		(void)fclose(f);
	*ret_len = len;
	return TAKE_PTR(bytes);
}

static int input_format(const char *format, const char *path)
{
	int f = format ? report_format_by_name(format) : report_format_by_path(path);
	char list[100];

	if (f >= 0 && report_reads((enum report_format)f))
		return f;
	report_reads_list(list, sizeof(list));
	if (f >= 0)
		fprintf(stderr,
			"kindling: %s: the format %s does not hold a complete profile; kindling "
			"reads %s\n",
			path, report_format_name((enum report_format)f), list);
	else
		fprintf(stderr, "kindling: the format of %s is unknown; kindling reads %s\n",
			format ? format : path, list);
	return -1;
}

int read_profile(const char *path, const char *format, struct report_reading *r,
		 struct profile **ret)
{
	CLEANUP(freep) char *bytes = NULL;
	int f = input_format(format, path), e;
	size_t len;

	if (f < 0)
		return CLI_USAGE;
	bytes = read_whole(path, &len);
	if (!bytes)
		return CLI_FAILED;
	e = report_read((enum report_format)f, bytes, len, r, ret);
	if (e < 0) {
		fprintf(stderr, "kindling: %s: ", path);
		print_text(stderr, e == -EBADMSG ? r->why : strerror(-e));
		fputc('\n', stderr);
		return CLI_FAILED;
	}
	if (*r->note) {
		fprintf(stderr, "kindling: %s: ", path);
		print_text(stderr, r->note);
		fputc('\n', stderr);
	}
	return CLI_OK;
}
