/*
 * kindlingd: settings, the lock, two processes (core/warden.h), the loop, and a clean end.
 * daemon/host/ does the rest.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/core/config_fields.h"
#include "daemon/core/heap.h"
#include "daemon/core/lock.h"
#include "daemon/ground/beside.h"
#include "daemon/ground/log.h"
#include "daemon/core/rights.h"
#include "daemon/core/subuids.h"
#include "daemon/core/warden.h"
#include "daemon/discovery/look.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "daemon/serve/serve.h"
#include "injector/filters.h"

#define HELP_WIDTH 100

struct daemon {
	struct loop *loop;
	struct host *host;
	struct notify *notify;
	const struct options *options;
	struct config *config; /* settings in force */
	const char *filters; /* socket of the process that reads seccomp filters; NULL = none */
	pid_t warden; /* 0 = there is none */
	bool on_terminal;
	bool stopping;
};

static void kindlingd_on_down(void *userdata)
{
	loop_stop(((struct daemon *)userdata)->loop, 0);
}

static void on_stop_signal(void *userdata, int signo)
{
	struct daemon *d = userdata;

	if (d->stopping) { /* a second signal ends it at once */
		loop_stop(d->loop, 1);
		return;
	}
	d->stopping = true;
	log_info("daemon.stop", "signal=%d", signo);
	notify_stopping();
	host_shutdown(d->host, kindlingd_on_down, d);
}

/* mkdir -p for the directory of @path (or @path itself when @whole). */
static void kindlingd_make_dirs(const char *path, bool whole)
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

/*
 * An older kernel would be half served: no file of a container could be opened safely (openat2(2),
 * Linux 5.6), and processes that answer requests would keep descriptors that are not theirs
 * (close_range(2), 5.9). A filter that refuses the call says nothing of the kernel.
 */
static bool kindlingd_kernel_is_new_enough(void)
{
	struct utsname u = { .release = "" };

	/* closes nothing: there is no such descriptor */
	if (syscall(SYS_close_range, ~0u, ~0u, 0) == 0 || errno != ENOSYS)
		return true;
	(void)uname(&u);
	fprintf(stderr, "kindlingd: it needs Linux 5.10 or later, and this kernel is %s\n",
		u.release);
	return false;
}

/* Returns -1 to continue, else the exit status. */
static int kindlingd_parse(int argc, char **argv, struct options *ret)
{
	switch (usage_parse(&usage_kindlingd, argc, argv, false, ret)) {
	case USAGE_SHOW_VERSION:
		puts("kindlingd " KINDLING_VERSION);
		return 0;
	case USAGE_SHOW_HELP:
		usage_print(stdout, &usage_kindlingd, HELP_WIDTH);
		return 0;
	case USAGE_WRONG:
		usage_print(stderr, &usage_kindlingd, HELP_WIDTH);
		return 2;
	case USAGE_GO_ON:
		break;
	}
	if (optind < argc) {
		fprintf(stderr, "kindlingd: %s is not an option\n", argv[optind]);
		usage_print(stderr, &usage_kindlingd, HELP_WIDTH);
		return 2;
	}
	return -1;
}

/* One setting from the command line, checked as in the file; @value NULL = not given. */
static bool set_option(struct config *c, const char *field, const char *option, const char *value,
		       char *err, size_t err_size)
{
	char why[200];

	for (size_t i = 0; value && i < config_entry_count; i++) {
		if (strcmp(config_entries[i].name, field) != 0)
			continue;
		if (config_set(c, &config_entries[i], value, why, sizeof(why)) == 0)
			return true;
		snprintf(err, err_size, "%s: %s", option, why);
		return false;
	}
	return true;
}

/* After the start the file may be readable only for the warden. */
static bool kindlingd_load(struct config *c, const struct options *o, bool again, char *err,
			   size_t err_size)
{
	CLEANUP(fd_closep) int fd = again ? warden_open_settings() : -ENOENT;

	if (fd == -ENOENT)
		return config_load(c, o->file, err, err_size) == 0;
	return config_load_fd(c, o->file, fd, err, err_size) == 0;
}

/* @live: the settings in force, NULL at the start. false: @err has the error, and @c must not be
 * used. */
static bool read_settings(struct config *c, const struct options *o, const struct config *live,
			  char *err, size_t err_size)
{
	config_defaults(c);
	if (o->file && !kindlingd_load(c, o, live, err, err_size))
		return false;
	return set_option(c, "socket", "--socket", o->socket, err, err_size) &&
	       set_option(c, "state_dir", "--state-dir", o->state_dir, err, err_size) &&
	       set_option(c, "log.level", "--log-level", o->log_level, err, err_size) &&
	       config_check_files(c, live, err, err_size) == 0;
}

/* ---- while it runs -------------------------------------------------------------------------- */

static void log_changes(const struct config_changes *c)
{
	for (unsigned i = 0; i < c->n; i++)
		log_info("settings.change", "name=%s from=%s to=%s when=%s", c->list[i].name,
			 log_str(c->list[i].from), log_str(c->list[i].to),
			 log_str(config_when_names[c->list[i].when]));
	log_info("settings.reload", "changes=%u", c->n);
}

/* A user's rootless containers count as that user. */
static void kindlingd_load_subuids(void)
{
	int r = subuids_load(SUBUIDS_FILE, SUBUIDS_PASSWD);

	if (r < 0)
		log_warn("daemon.subuids", "file=" SUBUIDS_FILE " error=%s", log_str(strerror(-r)));
	else if (r == SUBUIDS_MAX)
		log_warn("daemon.subuids",
			 "file=" SUBUIDS_FILE " error=\"only its first %d ranges are used\"", r);
}

/* serve_reload_fn */
static int kindlingd_reload(void *userdata, struct config_changes *ret, char *err, size_t err_size)
{
	struct daemon *d = userdata;
	static struct config next; /* some 100 KiB */

	kindlingd_load_subuids();
	if (!d->options->file)
		snprintf(err, err_size,
			 "kindlingd runs without a settings file; "
			 "start it with --config FILE");
	else if (d->stopping)
		snprintf(err, err_size, "kindlingd is stopping");
	else if (read_settings(&next, d->options, d->config, err, err_size)) {
		config_apply(d->config, &next, ret);
		log_set_level((enum log_level)d->config->log_level);
		host_settings(d->host);
		log_changes(ret);
		return 0;
	}
	log_err("settings.refused", "error=%s", log_str(err));
	return -EINVAL;
}

static bool is_terminal_gone(const struct daemon *d)
{
	return d->on_terminal && tcgetpgrp(STDERR_FILENO) < 0 && errno == EIO;
}

static void on_hangup(void *userdata, int signo)
{
	CLEANUP(freep) struct config_changes *changes = calloc(1, sizeof(*changes));
	struct daemon *d = userdata;
	char err[512];

	if (is_terminal_gone(
		    d)) { /* the warden is gone, so nobody could stop this process any more */
		if (!d->stopping)
			on_stop_signal(d, signo);
		return;
	}
	if (!changes)
		return;
	notify_reloading();
	notify_reloaded(d->notify, kindlingd_reload(d, changes, err, sizeof(err)) < 0 ? err : NULL);
}

/*
 * The lock lies in the socket's directory: one daemon for /run/kindling, whatever its socket's
 * name, and a test's daemon uses a directory of its own. The fd or -1.
 */
static int take_lock(const struct config *c)
{
	char path[sizeof(c->socket) + 32];
	pid_t holder = 0;
	int fd;

	strcpy(path, c->socket);
	strcpy(strrchr(path, '/') + 1, "kindlingd.lock");
	fd = lock_take(path, &holder);
	/* after a warden was killed its data process ends a moment later */
	for (int i = 0;
	     i < 20 && fd == -EWOULDBLOCK && holder > 0 && kill(holder, 0) < 0 && errno == ESRCH;
	     i++) {
		usleep(50000);
		fd = lock_take(path, &holder);
	}
	if (fd == -EWOULDBLOCK)
		fprintf(stderr,
			"kindlingd: another kindlingd (pid %d) runs on this machine and holds %s\n",
			(int)holder, path);
	else if (fd < 0)
		fprintf(stderr, "kindlingd: lock %s: %s\n", path, strerror(-fd));
	return fd < 0 ? -1 : fd;
}

/* Each target takes three descriptors, and the usual soft limit is 1024. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* To be called before there are threads or children, which inherit the mask. */
static int watch_signals(struct daemon *d)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	r = loop_signal(d->loop, SIGTERM, on_stop_signal, d);
	if (r == 0)
		r = loop_signal(d->loop, SIGINT, on_stop_signal, d);
	return r < 0 ? r : loop_signal(d->loop, SIGHUP, on_hangup, d);
}

/* A daemon under a seccomp filter cannot read the filters of JVMs, and attaches without knowing
 * them: the user is told. Returns the socket of the process that reads filters instead, which may
 * be about to start; NULL = there is none. */
static const char *find_filters(void)
{
	const char *path = getenv(FILTERS_SOCKET_ENV);

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
		return NULL;
	if (path && *path && strlen(path) < sizeof(((struct warden_settings *)0)->filters))
		return path;
	if (access(FILTERS_SOCKET, F_OK) < 0)
		log_warn(
			"daemon.filter",
			"error=\"kindlingd runs under a seccomp filter and therefore cannot read the "
			"filters of JVMs, and no kindling-inject filters answers for it at %s "
			"(docs/operations.md)\"",
			FILTERS_SOCKET);
	return NULL;
}

/* ---- two processes -------------------------------------------------------------------------- */

/* Returns false: this process does everything itself, with all rights. */
static bool is_separated(const struct config *c)
{
	return strcmp(c->user, "root") != 0 && strcmp(c->user, "self") != 0;
}

static void kindlingd_find(char *path, size_t size, const char *program)
{
	if (!beside_find_program(path, size, program))
		path[0] = '\0';
}

/* Returns only in the data process. */
static int kindlingd_separate(struct daemon *d)
{
	static struct warden_settings s;
	const struct config *c = d->config;

	snprintf(s.programs[WARDEN_INJECTOR], sizeof(s.programs[0]), "%s", c->injector);
	kindlingd_find(s.programs[WARDEN_LOOK], sizeof(s.programs[0]), "kindling-look");
	kindlingd_find(s.programs[WARDEN_SYMBOLS], sizeof(s.programs[0]), "kindling-symbols");
	/* a receiver for each JVM, and the processes that attach or clean up; the most that the
	 * rooms ask for, including children that hang */
	s.children_max[WARDEN_INJECTOR] = 2 * TARGETS_MAX;
	s.children_max[WARDEN_LOOK] = LOOK_STUCK_ALL + LOOK_LANES;
	s.children_max[WARDEN_SYMBOLS] = SYMBOLS_CHILDREN_MAX;
	s.children_max[WARDEN_UPLOAD] = 1;
	kindlingd_find(s.programs[WARDEN_UPLOAD], sizeof(s.programs[0]), "kindling-upload");
	s.children_max[WARDEN_NAMES] = 2; /* one that was killed, and the next */
	kindlingd_find(s.programs[WARDEN_NAMES], sizeof(s.programs[0]), "kindling-names");
	snprintf(s.cri, sizeof(s.cri), "%s", c->names_cri);
	snprintf(s.library, sizeof(s.library), "%s", c->agent);
	snprintf(s.socket, sizeof(s.socket), "%s", c->socket);
	snprintf(s.filters, sizeof(s.filters), "%s", d->filters ? d->filters : "");
	s.file = d->options->file;
	s.state_dir = c->state_dir;
	s.tell = notify_report;
	d->warden = getpid();
	return warden_begin(&s);
}

/* Everything that needs these rights is open. */
static int give_up_rights(struct daemon *d, struct fault *f)
{
	const struct config *c = d->config;
	struct rights rights;
	int r = rights_prepare(c->user, c->state_dir, &rights, f);

	if (r == 0)
		r = rights_drop(&rights, d->warden, f);
	if (r < 0)
		return r;
	if (access(c->state_dir, R_OK | W_OK | X_OK) < 0)
		return fault_set(
			f, errno, FAULT_INTERNAL,
			"state_dir: uid %u cannot reach %.100s; every directory above it needs the x bit for others: ",
			(unsigned)rights.uid, c->state_dir);
	log_info("daemon.rights", "uid=%u gid=%u", (unsigned)rights.uid, (unsigned)rights.gid);
	return 0;
}

static int serve_until_stopped(struct daemon *d, const struct config *config, struct fault *f)
{
	CLEANUP(host_freep) struct host *host = NULL;
	CLEANUP(serve_freep) struct serve *serve = NULL;
	CLEANUP(notify_freep) struct notify *notify = NULL;
	const char *why = "";
	int r = host_new(d->loop, config, true, true, &host, f);

	if (r == 0)
		r = serve_new(host, &serve, f);
	if (r == 0 && d->filters && targets_await_filters(host_targets(host), d->filters) < 0)
		r = fault_set(f, ENOMEM, FAULT_INTERNAL, "wait for %s: ", d->filters);
	kindlingd_load_subuids();
	if (r == 0 && d->warden)
		r = give_up_rights(d, f);
	if (r < 0)
		return r;
	r = notify_new(d->loop, host, &notify);
	if (r < 0)
		return fault_set(f, -r, FAULT_INTERNAL, "start the watchdog: ");
	d->notify = notify;
	d->host = host;
	if (d->options->file)
		host_uploads_begin(host, d->options->file);
	serve_on_reload(serve, kindlingd_reload, d);
	log_info("daemon.ready", "version=%s socket=%s discovery=%s why=%s", KINDLING_VERSION,
		 config->socket, discovery_source(host_discovery(host), &why), log_str(why));
	notify_ready(notify);
	r = loop_run(d->loop);
	return r < 0 ? fault_set(f, -r, FAULT_INTERNAL, "the event loop: ") : r;
}

int main(int argc, char **argv)
{
	CLEANUP(loop_freep) struct loop *loop = NULL;
	CLEANUP(fd_closep) int lock_fd = -1;
	struct options options = { 0 };
	struct daemon d = { .on_terminal = isatty(STDERR_FILENO) };
	static struct config config;
	struct fault f = { 0 };
	char error[512];
	int r;

	heap_begin(HEAP_APART);
	r = kindlingd_parse(argc, argv, &options);
	if (r >= 0)
		return r;
	if (!read_settings(&config, &options, NULL, error, sizeof(error))) {
		fprintf(stderr, "kindlingd: %s\n", error);
		return 1;
	}
	if (geteuid() != 0 && strcmp(config.user, "self") != 0) {
		fprintf(stderr,
			"kindlingd: it must run as root to enter containers; start it with: sudo kindlingd "
			"(with `user: self` in the settings it needs no root, and profiles your "
			"own JVMs)\n");
		return 1;
	}
	if (!kindlingd_kernel_is_new_enough())
		return 1;
	log_set_level((enum log_level)config.log_level);
	log_to_journal();
	raise_file_limit();
	(void)umask(022); /* everybody may enter the socket's directory, whatever the umask of the
			   * shell */
	kindlingd_make_dirs(config.socket, false);
	kindlingd_make_dirs(config.state_dir, true);
	lock_fd = take_lock(&config);
	(void)umask(027); /* everything else is private; kindling-upload reads the history through
			   * its group */
	if (lock_fd < 0)
		return 1;
	d.filters = find_filters();
	d.options = &options;
	d.config = &config;
	r = is_separated(&config) ? kindlingd_separate(&d) : 0;
	if (r == 0)
		r = loop_new(&loop);
	d.loop = loop;
	if (r == 0)
		r = watch_signals(&d);
	if (r == 0)
		r = serve_until_stopped(&d, &config, &f);
	if (r < 0)
		fprintf(stderr, "kindlingd: %s\n", f.code ? f.what : strerror(-r));
	log_info("daemon.end", "status=%d", r < 0 ? 1 : r);
	return r < 0 ? 1 : r;
}
