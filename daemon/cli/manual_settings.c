/* See manual.h: kindlingd.yaml(5). */
#include <string.h>
#include "daemon/cli/manual.h"
#include "daemon/core/config.h"
#include "daemon/core/config_change.h"

static const char about[] =
	".SH DESCRIPTION\n"
	"The settings of kindlingd, YAML. Every one may be left out: then its default is in force, as it is "
	"without any file. The names below have dots between nested maps: \\fBlog.level\\fR is \\fBlevel\\fR in "
	"\\fBlog\\fR.\n"
	".PP\n"
	"Durations take ns, us, ms, s, m, h or d, as in 10ms, 1.5h or 2m30s; sizes B, KiB, MiB, GiB or TiB. "
	"\\fBkindling config check\\fR FILE says whether kindlingd would take a file, with the line of a mistake, "
	"and prints all that is in force with it. \\fBkindling config reload\\fR has the running one read it again; "
	"a file with a mistake changes nothing.\n";

static const char *const when_sentences[] = {
	[CONFIG_NOW] = "A changed value is in force at once.",
	[CONFIG_NEXT_ATTACH] = "A changed value is for JVMs that are attached to from then on.",
	[CONFIG_RESTART] = "A changed value is in force when kindlingd starts again.",
};

/* Writes lines as they are, also those that roff would take for commands. */
static void manual_verbatim(FILE *to, const char *s)
{
	char line[1024];

	fputs(".nf\n", to);
	for (size_t len; *s; s += len + (s[len] == '\n')) {
		char *tick;

		len = strcspn(s, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)len, s);
		while ((tick = strchr(
				line,
				'`'))) /* the second backtick may be in another line: no bold */
			*tick = '"';
		manual_text(to, line);
	}
	fputs(".fi\n", to);
}

void manual_settings(FILE *to, const char *example)
{
	static struct config defaults;
	const char *name, *sentence;
	char value[CONFIG_VALUE_MAX];

	config_defaults(&defaults);
	manual_head(to, "kindlingd.yaml", 5, "settings of the JVM profiler kindlingd");
	fputs(about, to);
	fputs(".SH SETTINGS\n", to);
	for (size_t i = 0; (name = config_field(i, &sentence)); i++) {
		config_value(&defaults, i, value, sizeof(value));
		if (value[0] == '/' && strncmp(name, "socket", 6) != 0 &&
		    strncmp(name, "state_dir", 9) != 0)
			strcpy(value, "auto"); /* not the path that the build machine has */
		fprintf(to, ".TP\n\\fB%s\\fR\n", name);
		manual_text(to, sentence);
		fputs(".br\n", to);
		fputs("Default: ", to);
		manual_text(to, value);
		manual_text(to, when_sentences[config_when(name)]);
	}
	fputs(".PP\n\\fBtargets.rules\\fR, \\fBlabels.set\\fR, \\fBlabels.rules\\fR, \\fBevents\\fR and \\fBsinks\\fR are "
	      "lists and maps; they are explained in the file below.\n"
	      ".SH \"A FILE WITH EVERY SETTING\"\n",
	      to);
	manual_verbatim(to, example);
	fputs(".SH FILES\n.TP\n/etc/kindling/kindlingd.yaml\nwhere the service looks for it\n"
	      ".SH \"SEE ALSO\"\nkindlingd(8), kindling(1)\n",
	      to);
}
