/* See command_line.h. */
#include "injector/command_line.h"

static const struct usage_row rows[] = {
	COMMAND_WORD("load", "LIBRARY [OPTIONS]",
		     "load a JVMTI agent; the path is as the JVM sees it"),
	COMMAND_WORD("jcmd", "COMMAND [ARG...]", "a diagnostic command, e.g. jcmd VM.version"),
	COMMAND_WORD("properties", NULL, "the JVM's system properties"),
	COMMAND_WORD("threaddump", NULL, "stacks of all threads"),
	COMMAND_WORD(
		"check", "[json] [read-seccomp] [over_tmp=1]",
		"check whether an agent could be loaded, without attaching. read-seccomp stops a "
		"sleeping thread for about 50 us to read its filter; over_tmp=1: a tmpfs may cover "
		"its /tmp"),
	COMMAND_WORD("filters", "[SOCKET]",
		     "without a PID: a service for a kindlingd that runs under a seccomp filter "
		     "and therefore cannot read the filters of JVMs; it reports whether one would "
		     "kill the JVM. It listens at SOCKET, or on the socket that systemd passes"),
	OPTION_TEXT(0, "deadline", "DURATION", struct command_line, deadline,
		    "give up after this time (default 10s)"),
	OPTION_HIDDEN("result-fd", struct command_line, result_fd), /* used by kindlingd:
								     * result.h */
	OPTION_VERSION,
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_inject = {
	"kindling-inject",
	"talks to a HotSpot JVM in any container through its attach socket",
	"kindling-inject [--deadline DURATION] PID COMMAND [ARGUMENT...]",
	"Talks to a HotSpot JVM in any container through its attach socket. Sends SIGQUIT only to a "
	"process that handles it, gives up at a deadline, and leaves no file behind.",
	rows,
	"Exit status: 0 done, 1 failed (the reason is printed), 2 wrong usage. For check: 0 yes, "
	"1 no, "
	"2 not everything could be checked.",
	"sudo kindling-inject 4711 check\n"
	"sudo kindling-inject --deadline 30 4711 jcmd VM.version",
};
