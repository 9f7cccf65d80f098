/* kindlingd: settings, the lock, the loop, and a clean end. What happens in between: daemon/host.c. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include "daemon/core/clock.h"
#include "daemon/core/lock.h"
#include "daemon/core/log.h"
#include "daemon/serve/serve.h"

static const char usage[] =
	"Usage: kindlingd [OPTION...]\n"
	"\n"
	"Profiles every JVM of this host, in containers too, and keeps a local history. Runs in the\n"
	"foreground until SIGTERM or SIGINT; then it detaches from every JVM and leaves nothing behind.\n"
	"\n"
	"  -c, --config FILE      settings (YAML); see kindlingd.yaml for every field\n"
	"  -s, --socket PATH      where the command line finds the daemon\n"
	"                         (default /run/kindling/kindling.sock)\n"
	"  -d, --state-dir DIR    history and symbols (default /var/lib/kindling)\n"
	"  -v, --verbose          log details\n"
	"      --version\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0 ended as asked, 1 could not start or run, 2 wrong usage.\n";

struct daemon {
	struct loop *loop;
	struct host *host;
	bool stopping;
};

static void on_down(void *userdata)
{
	loop_stop(((struct daemon *)userdata)->loop, 0);
}

static void on_stop_signal(void *userdata, int signo)
{
	struct daemon *d = userdata;

	if (d->stopping) { /* asked twice: at once */
		loop_stop(d->loop, 1);
		return;
	}
	d->stopping = true;
	log_info("daemon.stop", "signal=%d", signo);
	sd_notify(0, "STOPPING=1");
	host_shutdown(d->host, on_down, d);
}

static void on_watchdog(void *userdata)
{
	(void)userdata;
	sd_notify(0, "WATCHDOG=1");
}

/* mkdir -p for the directory of @path (or @path itself when @whole). */
static void make_dirs(const char *path, bool whole)
{
	char copy[300];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(copy, 0755);
		*p = '/';
	}
	if (whole)
		(void)mkdir(copy, 0750);
}

/* -1 = go on, else the exit status. */
static int parse(int argc, char **argv, struct config *config)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' }, { "socket", required_argument, NULL, 's' },
		{ "state-dir", required_argument, NULL, 'd' }, { "verbose", no_argument, NULL, 'v' },
		{ "version", no_argument, NULL, 'V' }, { "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *socket = NULL, *state_dir = NULL, *file = NULL;
	bool verbose = false;
	char error[512];
	int c;

	while ((c = getopt_long(argc, argv, "c:s:d:vh", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			file = optarg;
			break;
		case 's':
			socket = optarg;
			break;
		case 'd':
			state_dir = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		case 'V':
			puts("kindlingd " KINDLING_VERSION);
			return 0;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "kindlingd: %s is not an option\n%s", argv[optind], usage);
		return 2;
	}
	if (file && config_load(config, file, error, sizeof(error)) < 0) {
		fprintf(stderr, "kindlingd: %s\n", error);
		return 1;
	}
	if (socket)
		snprintf(config->socket, sizeof(config->socket), "%s", socket);
	if (state_dir)
		snprintf(config->state_dir, sizeof(config->state_dir), "%s", state_dir);
	if (verbose)
		config->log_level = LOG_LEVEL_DEBUG;
	return -1;
}

static int serve_until_stopped(struct daemon *d, const struct config *config, struct fault *f)
{
	CLEANUP(host_freep) struct host *host = NULL;
	CLEANUP(serve_freep) struct serve *serve = NULL;
	struct loop_timer *watchdog = NULL;
	uint64_t watchdog_us = 0;
	const char *why = "";
	int r = host_new(d->loop, config, true, true, &host, f);

	if (r == 0)
		r = serve_new(host, &serve, f);
	if (r < 0)
		return r;
	d->host = host;
	(void)loop_signal(d->loop, SIGTERM, on_stop_signal, d);
	(void)loop_signal(d->loop, SIGINT, on_stop_signal, d);
	if (sd_watchdog_enabled(0, &watchdog_us) > 0)
		(void)loop_timer_add(d->loop, 0, watchdog_us * 1000 / 3, on_watchdog, NULL, &watchdog);
	log_info("daemon.ready", "version=%s socket=%s discovery=%s why=%s", KINDLING_VERSION, config->socket,
		 discovery_source(host_discovery(host), &why), log_str(why));
	sd_notify(0, "READY=1");
	r = loop_run(d->loop);
	loop_timer_free(watchdog);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL, "the event loop: ") : r;
}

int main(int argc, char **argv)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	CLEANUP(fd_closep) int lock_fd = -1;
	struct daemon d = { 0 };
	struct config config;
	struct fault f = { 0 };
	char lock_path[160];
	pid_t holder = 0;
	int r;

	config_defaults(&config);
	r = parse(argc, argv, &config);
	if (r >= 0)
		return r;
	if (geteuid() != 0) {
		fprintf(stderr, "kindlingd: it must run as root, to enter containers; try sudo kindlingd\n");
		return 1;
	}
	log_set_level((enum log_level)config.log_level);
	signal(SIGPIPE, SIG_IGN);
	make_dirs(config.socket, false);
	make_dirs(config.state_dir, true);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", config.socket);
	lock_fd = lock_take(lock_path, &holder);
	if (lock_fd < 0) {
		if (lock_fd == -EWOULDBLOCK)
			fprintf(stderr, "kindlingd: another daemon runs already (pid %d, lock %s)\n", holder,
				lock_path);
		else
			fprintf(stderr, "kindlingd: lock %s: %s\n", lock_path, strerror(-lock_fd));
		return 1;
	}
	if (loop_new(&loop) < 0) {
		fprintf(stderr, "kindlingd: no memory\n");
		return 1;
	}
	d.loop = loop;
	r = serve_until_stopped(&d, &config, &f);
	if (f.code)
		fprintf(stderr, "kindlingd: %s\n", f.what);
	log_info("daemon.end", "status=%d", r < 0 ? 1 : r);
	return r < 0 ? 1 : r;
}
