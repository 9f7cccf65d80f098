/* kindling record: one JVM for some seconds, through the daemon or, as root, without one. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include "daemon/cli/cli.h"
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/host.h"
#include "daemon/report/report.h"

#define ATTACH_NS (15 * NS_PER_S)

static const char usage[] =
	"Usage: kindling record TARGET -d 30s -o FILE [OPTION...]\n"
	"\n"
	"Records one JVM and writes the profile. Works through the running daemon; without one, as root,\n"
	"it attaches by itself, records, and detaches (TARGET is a pid then). Ctrl-C writes what there is.\n"
	"\n"
	"  -d, --duration DURATION   how long: 30s, 5m (default 30s)\n"
	"  -i, --interval INTERVAL   CPU time between samples: 10ms, 1ms. Lifts the agent's CPU budget\n"
	"                            for this recording; the file says so\n"
	"  -e, --event EVENT         cpu (the default)\n"
	"  -o, --output FILE         .html, .collapsed, .txt, .pb.gz or .json; \"-\" is stdout\n"
	"  -f, --format FORMAT       the format, whatever the file is called\n"
	"      --threads             one tower per thread\n"
	"  -h, --help\n"
	"\n"
	"Example: kindling record 4711 -d 10s -o flame.html\n";

struct arguments {
	const char *target, *duration, *interval, *output, *format_option, *format;
	uint64_t duration_ns, interval_ns;
	bool threads;
};

/* "30s", "10ms", "2m"; a bare number is seconds */
static bool duration(const char *s, uint64_t *ret)
{
	double v, unit;
	char *end;

	v = strtod(s, &end);
	if (end == s || v <= 0)
		return false;
	if (strcmp(end, "ms") == 0)
		unit = 1e6;
	else if (strcmp(end, "us") == 0)
		unit = 1e3;
	else if (strcmp(end, "s") == 0 || *end == '\0')
		unit = 1e9;
	else if (strcmp(end, "m") == 0)
		unit = 60e9;
	else if (strcmp(end, "h") == 0)
		unit = 3600e9;
	else
		return false;
	*ret = (uint64_t)(v * unit);
	return true;
}

static void show_progress(const struct arguments *a, double elapsed_s, double samples)
{
	double all = (double)a->duration_ns / 1e9, part = all > 0 ? elapsed_s / all : 1;
	int filled = (int)(30 * (part < 1 ? part : 1));

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r[%.*s%*s] %.0f of %.0f s, %.0f samples ", filled,
		"##############################", 30 - filled, "", elapsed_s, all, samples);
}

static int finish(const struct arguments *a, const char *bytes, size_t len)
{
	int r = write_file(a->output, bytes, len);

	if (isatty(STDERR_FILENO))
		fputc('\n', stderr);
	if (r == CLI_OK && strcmp(a->output, "-") != 0)
		fprintf(stderr, "%s written, %zu bytes\n", a->output, len);
	return r;
}

/* ---- through the daemon --------------------------------------------------------------------------- */

static int fetch(const struct arguments *a, int id)
{
	char path[256];
	struct reply reply;
	int r;

	snprintf(path, sizeof(path), "/v1/recordings/%d/profile", id);
	path_add(path, sizeof(path), "format", a->format);
	path_add(path, sizeof(path), "threads", a->threads ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r == CLI_OK)
		r = finish(a, reply.body ? reply.body : "", reply.len);
	reply_free(&reply);
	return r;
}

static int wait_for_recording(const struct arguments *a, int id)
{
	char path[64];
	int r = CLI_OK;
	bool done = false;

	snprintf(path, sizeof(path), "/v1/recordings/%d", id);
	while (!done && r == CLI_OK) {
		struct timespec pause = { 0, 200000000 };
		struct reply reply;
		cJSON *json;

		nanosleep(&pause, NULL);
		r = client_request(cli_interrupted ? "DELETE" : "GET", path, &reply);
		if (r != CLI_OK)
			return r;
		json = cJSON_Parse(reply.body);
		show_progress(a, json_number(json, "elapsed_s"), json_number(json, "samples"));
		done = strcmp(json_text(json, "state"), "done") == 0;
		cJSON_Delete(json);
		reply_free(&reply);
	}
	return r;
}

static int record_by_daemon(const struct arguments *a, struct reply *reply)
{
	cJSON *json = cJSON_Parse(reply->body);
	int id = (int)json_number(json, "id"), r;

	cJSON_Delete(json);
	reply_free(reply);
	r = wait_for_recording(a, id);
	return r == CLI_OK ? fetch(a, id) : r;
}

/* ---- by ourselves ------------------------------------------------------------------------------------- */

struct own {
	struct loop *loop;
	struct host *host;
	bool down;
};

static void on_down(void *userdata)
{
	((struct own *)userdata)->down = true;
}

static int attach(struct own *o, const struct arguments *a, struct target **ret)
{
	CLEANUP(fd_closep) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t deadline = clock_mono_ns() + ATTACH_NS;
	struct jvm jvm;
	int kind = jvm_probe(proc, (pid_t)atoi(a->target), &jvm);

	if (kind != JVM_READY && kind != JVM_YOUNG) {
		fprintf(stderr, "kindling: no daemon answers on %s, and %s is not the pid of a JVM\n",
			cli_socket, a->target);
		return CLI_FAILED;
	}
	if (targets_add(host_targets(o->host), &jvm, clock_mono_ns(), ret) < 0)
		return CLI_FAILED;
	while ((*ret)->state != TARGET_GONE && !(*ret)->first_sample_mono_ns &&
	       clock_mono_ns() < deadline && !cli_interrupted) {
		(void)loop_round(o->loop, 20 * NS_PER_MS);
		if ((*ret)->state == TARGET_FAILED && (*ret)->fault.flags & FAULT_PERMANENT)
			break;
		if ((*ret)->state == TARGET_STREAMING && clock_mono_ns() > deadline - ATTACH_NS + NS_PER_S)
			break; /* an idle JVM has no sample to show */
	}
	if ((*ret)->state == TARGET_STREAMING)
		return CLI_OK;
	fprintf(stderr, "kindling: process %s: %s\n", a->target,
		(*ret)->fault.code ? (*ret)->fault.what : "it could not be attached to in time");
	return CLI_FAILED;
}

static int collect(struct own *o, const struct arguments *a, struct target *t)
{
	struct report_options options = { .threads = a->threads };
	CLEANUP(profile_freep) struct profile *p = NULL;
	uint64_t begin = clock_mono_ns();
	struct recording *rec;
	size_t len;
	char *out;
	int r;

	r = recording_new(o->host, t, a->interval_ns, &rec);
	if (r < 0) {
		fprintf(stderr, "kindling: record: %s\n", strerror(-r));
		return CLI_FAILED;
	}
	while (clock_mono_ns() - begin < a->duration_ns && !cli_interrupted && t->state == TARGET_STREAMING) {
		(void)loop_round(o->loop, 100 * NS_PER_MS);
		show_progress(a, (double)(clock_mono_ns() - begin) / 1e9, (double)recording_samples(rec));
	}
	recording_finish(rec, &p);
	if (!p || report_write(p, (enum report_format)report_format_by_name(a->format), &options, &out, &len) < 0)
		return CLI_FAILED;
	r = finish(a, out, len);
	free(out);
	return r;
}

static void remove_state(const char *dir)
{
	char command[400];

	/* a directory mkdtemp() made for us: no foreign name is in the command */
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		fprintf(stderr, "kindling: %s was left behind\n", dir);
}

static int record_by_ourselves(const struct arguments *a)
{
	char dir[] = "/tmp/kindling-record-XXXXXX";
	struct own o = { 0 };
	struct config config;
	struct fault f = { 0 };
	struct target *t;
	int r = CLI_FAILED;

	if (geteuid() != 0) {
		fprintf(stderr, "kindling: no daemon answers on %s; recording without one needs root (sudo)\n",
			cli_socket);
		return CLI_NO_DAEMON;
	}
	if (!mkdtemp(dir))
		return CLI_FAILED;
	log_set_level(LOG_LEVEL_ERR);
	config_defaults(&config);
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	if (loop_new(&o.loop) == 0 && host_new(o.loop, &config, false, false, &o.host, &f) == 0) {
		r = attach(&o, a, &t);
		if (r == CLI_OK)
			r = collect(&o, a, t);
		host_shutdown(o.host, on_down, &o);
		while (!o.down)
			(void)loop_round(o.loop, 20 * NS_PER_MS);
	} else {
		fprintf(stderr, "kindling: %s\n", f.what);
	}
	host_free(o.host);
	loop_free(o.loop);
	remove_state(dir);
	return r;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "duration", required_argument, NULL, 'd' }, { "interval", required_argument, NULL, 'i' },
		{ "event", required_argument, NULL, 'e' },    { "output", required_argument, NULL, 'o' },
		{ "format", required_argument, NULL, 'f' },   { "threads", no_argument, NULL, 'T' },
		{ "help", no_argument, NULL, 'h' },	      { NULL, 0, NULL, 0 },
	};
	const char *event = "cpu";
	int c;

	while ((c = getopt_long(argc, argv, "d:i:e:o:f:h", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			a->duration = optarg;
			break;
		case 'i':
			a->interval = optarg;
			break;
		case 'e':
			event = optarg;
			break;
		case 'o':
			a->output = optarg;
			break;
		case 'f':
			a->format_option = optarg;
			break;
		case 'T':
			a->threads = true;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? CLI_OK : CLI_USAGE;
		}
	}
	a->target = optind < argc ? argv[optind] : NULL;
	if (!a->target || !a->output) {
		fprintf(stderr, "kindling record: %s\n\n%s",
			a->target ? "-o FILE says where to write" : "name a TARGET", usage);
		return CLI_USAGE;
	}
	if (!duration(a->duration, &a->duration_ns) ||
	    (a->interval && (!duration(a->interval, &a->interval_ns) || a->interval_ns < 100000 ||
			     a->interval_ns > NS_PER_S))) {
		fprintf(stderr, "kindling record: -d takes a duration such as 30s, -i 100us to 1s\n");
		return CLI_USAGE;
	}
	if (strcmp(event, "cpu") != 0) {
		fprintf(stderr, "kindling record: -e %s is not one of cpu\n", event);
		return CLI_USAGE;
	}
	a->format = format_of(a->format_option, a->output);
	return a->format ? -1 : CLI_USAGE;
}

int command_record(int argc, char **argv)
{
	struct arguments a = { .duration = "30s" };
	char path[1024] = "/v1/recordings", seconds[32];
	struct reply reply;
	int r = parse(argc, argv, &a);

	if (r >= 0)
		return r;
	snprintf(seconds, sizeof(seconds), "%.3fs", (double)a.duration_ns / 1e9);
	path_add(path, sizeof(path), "target", a.target);
	path_add(path, sizeof(path), "seconds", seconds);
	path_add(path, sizeof(path), "interval", a.interval);
	cli_catch_interrupt();
	r = client_try("POST", path, &reply);
	if (r == CLI_NO_DAEMON)
		return record_by_ourselves(&a);
	return r == CLI_OK ? record_by_daemon(&a, &reply) : r;
}
