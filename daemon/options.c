/* See options.h. */
#include "daemon/options.h"

static const struct usage_row rows[] = {
	OPTION_TEXT('c', "config", "FILE", struct options, file,
		    "settings (YAML); see kindlingd.yaml for every field"),
	OPTION_TEXT(
		's', "socket", "PATH", struct options, socket,
		"where the command line finds the daemon (default /run/kindling/kindling.sock)"),
	OPTION_TEXT('d', "state-dir", "DIR", struct options, state_dir,
		    "history and symbols (default /var/lib/kindling)"),
	OPTION_CHOICE('l', "log-level", "LEVEL", "error warning info debug", struct options,
		      log_level, "error, warning, info or debug"),
	OPTION_FIXED('v', "verbose", "debug", struct options, log_level,
		     "the same as --log-level debug"),
	OPTION_VERSION,
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_kindlingd = {
	"kindlingd",
	"profiles every JVM of this host",
	"kindlingd [OPTION...]",
	"Profiles every JVM of this host, in containers too, and keeps a local history. Runs in the "
	"foreground until SIGTERM or SIGINT; then it detaches from every JVM and leaves nothing behind. "
	"SIGHUP, as `kindling config reload`, reads the settings again.",
	rows,
	"Exit status: 0 ended as asked, 1 could not start or run, 2 wrong usage.",
	"sudo kindlingd --config /etc/kindling/kindlingd.yaml",
};
