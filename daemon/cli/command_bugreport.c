/*
 * kindling bugreport: writes one archive with everything that a maintainer asks for first. It is
 * meant for public reports: hide.h says what none of its files contains.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/magic.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/hide.h"
#include "daemon/cli/tar.h"
#include "daemon/core/config.h"
#include "daemon/ground/mem.h"

#define LOG_LINES  "500"
#define OUTPUT_MAX (8u << 20) /* of a program's output */

extern char **environ;

struct bugreport {
	const char *output, *config;
	struct tar *tar;
	char prefix[64], list[1024]; /* list: the archive's files, shown to the user */
	struct hide hide;
};

static const struct usage_row options[] = {
	OPTION_TEXT('o', "output", "FILE", struct bugreport, output,
		    "where to write it (default kindling-bugreport-DATE.tar.gz in the current "
		    "directory)"),
	OPTION_TEXT('c', "config", "FILE", struct bugreport, config,
		    "the settings of kindlingd (default /etc/kindling/kindlingd.yaml)"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_bugreport = {
	"bugreport",
	"an archive for a bug report, without names and secrets",
	"kindling bugreport [-o FILE]",
	"Writes an archive with what a maintainer needs: versions, the kernel and what it allows, the "
	"settings, the answers of status, metrics and doctor, and the last lines of the log of kindlingd. "
	"It contains no stacks, command lines, environments or passwords. Names of JVMs, "
	"containers, pods, services, images and sinks are replaced by numbers, the same ones in "
	"every file. Of the settings it contains numbers, words of fixed lists, and how many "
	"rules, labels and sinks there are. The command lists the files of the archive, which are "
	"plain text: look through them before you give the archive away.\nRun as root, it also "
	"contains all JVMs and the log.",
	options,
	NULL,
	"sudo kindling bugreport -o report.tar.gz",
};

/* ---- files ----------------------------------------------------------------------------------- */

struct text {
	FILE *f;
	char *bytes;
	size_t len;
};

static bool text_begin(struct text *t)
{
	*t = (struct text){ 0 };
	t->f = open_memstream(&t->bytes, &t->len);
	return t->f;
}

/* Adds the text so far to the archive as the file @name; @what describes it in the list. */
static void text_end(struct bugreport *b, struct text *t, const char *name, const char *what)
{
	char path[100];
	size_t len = strlen(b->list);

	if (fclose(t->f) == 0) {
		snprintf(path, sizeof(path), "%s/%s", b->prefix, name);
		tar_add(b->tar, path, t->bytes, t->len);
		snprintf(b->list + len, sizeof(b->list) - len, "  %-14s %s\n", name, what);
	}
	free(t->bytes);
}

static void put_file(FILE *to, const char *path)
{
	char line[512];
	FILE *f = fopen(path, "re");

	fprintf(to, "%s: ", path);
	if (!f || !fgets(line, sizeof(line), f))
		fprintf(to, "(%s)\n", f ? "empty" : strerror(errno));
	else
		fprintf(to, "%s%s", line, strchr(line, '\n') ? "" : "\n");
	if (f)
		fclose(f);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void put_lines_of(FILE *to, const char *path, const char *const *keys)
{
	char line[512];
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		for (const char *const *key = keys; *key; key++)
			if (strncmp(line, *key, strlen(*key)) == 0)
				fprintf(to, "%s: %s", path, line);
	if (f)
		fclose(f);
}

static void put_system(struct bugreport *b)
{
	static const char *const files[] = { "/proc/sys/kernel/perf_event_paranoid",
					     "/proc/sys/kernel/kptr_restrict",
					     "/proc/sys/kernel/unprivileged_bpf_disabled",
					     "/proc/sys/kernel/yama/ptrace_scope",
					     "/proc/sys/fs/pipe-max-size",
					     "/proc/sys/kernel/perf_event_max_sample_rate",
					     "/sys/kernel/security/lsm",
					     "/sys/devices/system/cpu/online",
					     "/proc/loadavg" };
	static const char *const release[] = { "PRETTY_NAME=", "ID=", "VERSION_ID=", NULL };
	static const char *const memory[] = { "MemTotal", "MemAvailable", NULL };
	struct statfs cgroup;
	struct utsname u;
	struct text t;

	if (!text_begin(&t))
		return;
	if (uname(&u) == 0) /* not the host's name */
		fprintf(t.f, "%s %s %s %s\n", u.sysname, u.release, u.version, u.machine);
	put_lines_of(t.f, "/etc/os-release", release);
	put_lines_of(t.f, "/proc/meminfo", memory);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put_file(t.f, files[i]);
	fprintf(t.f, "BTF of the kernel: %s\n",
		access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? "yes" : "no");
	if (statfs("/sys/fs/cgroup", &cgroup) == 0)
		fprintf(t.f, "cgroups: %s\n",
			cgroup.f_type == CGROUP2_SUPER_MAGIC ? "v2" : "v1 or mixed");
	fprintf(t.f, "CPUs: %ld\n", sysconf(_SC_NPROCESSORS_CONF));
	text_end(b, &t, "system.txt", "the distribution, the kernel and what it allows");
}

static void put_version(struct bugreport *b, const cJSON *status)
{
	struct text t;

	if (!text_begin(&t))
		return;
	fprintf(t.f,
		"kindling " KINDLING_VERSION "\ncompiler " __VERSION__ "\nglibc %d.%d when built\n",
		__GLIBC__, __GLIBC_MINOR__);
	if (status)
		fprintf(t.f, "kindlingd %s, up %.0f s\n", json_text_of(status, "version"),
			json_number_of(status, "uptime_s"));
	else
		fputs("kindlingd does not answer\n", t.f);
	fprintf(t.f, "asked by uid %u\n", (unsigned)geteuid());
	text_end(b, &t, "version.txt", "versions");
}

/* ---- settings -------------------------------------------------------------------------------- */

/* Is the value a number, true, false, or a word of a fixed list? Any other text or path may
 * contain somebody's name. */
static bool is_harmless(const char *value)
{
	return *value != '"' && *value != '/';
}

static void put_settings(struct bugreport *b)
{
	static struct config config, defaults;
	char value[CONFIG_VALUE_MAX], standard[CONFIG_VALUE_MAX], error[512];
	const char *name;
	struct text t;

	if (!text_begin(&t))
		return;
	config_defaults(&config);
	config_defaults(&defaults);
	if (config_load(&config, b->config, error, sizeof(error)) < 0) {
		/* the message could contain the wrong value */
		fputs("the file of settings cannot be read, or has an error (kindling config check says which)\n",
		      t.f);
		config = defaults;
	}
	fprintf(t.f, "events: %s\n", config_events(&config, value, sizeof(value)));
	for (size_t i = 0; (name = config_field(i, NULL)); i++) {
		config_value(&config, i, value, sizeof(value));
		config_value(&defaults, i, standard, sizeof(standard));
		fprintf(t.f, "%s: %s%s\n", name, is_harmless(value) ? value : "(left out)",
			strcmp(value, standard) == 0 ? "" : "   # not the default");
	}
	fprintf(t.f, "targets.rules: %u\nlabels.set: %u\nlabels.rules: %u\nsinks: %u\n",
		config.n_rules, config.n_labels, config.n_label_rules, config.n_sinks);
	for (unsigned i = 0; i < config.n_sinks; i++)
		fprintf(t.f, "  type %s\n", sink_type_names[config.sinks[i].type]);
	text_end(b, &t, "settings.txt", "settings: numbers, and words of fixed lists");
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Runs @argv and returns what it prints, at most OUTPUT_MAX bytes, malloc'ed; NULL = it cannot
 * be started. */
static char *output_of(char *const argv[])
{
	posix_spawn_file_actions_t actions;
	char *text = malloc(OUTPUT_MAX + 1);
	size_t len = 0;
	int fds[2], r;
	ssize_t n;
	pid_t pid;

	if (!text || pipe2(fds, O_CLOEXEC) < 0) {
		free(text);
		return NULL;
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	while (r == 0 && len < OUTPUT_MAX && (n = read(fds[0], text + len, OUTPUT_MAX - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	if (r == 0)
		(void)waitpid(pid, NULL, 0);
	text[len] = '\0';
	if (r == 0)
		return text;
	free(text);
	return NULL;
}

/* The answer of kindling doctor, one JSON object in each line; NULL = there is none. */
static char *ask_doctor(void)
{
	char self[] = "/proc/self/exe", socket[] = "--socket", doctor[] = "doctor",
	     json[] = "--json";
	char *argv[] = { self, socket, (char *)(uintptr_t)cli_socket, doctor, json, NULL };

	return output_of(argv);
}

/* Writes each JVM that @lines is about, or learns its names if @to is NULL. */
static void doctor_each(struct bugreport *b, struct text_out *to, const char *lines)
{
	for (const char *line = lines; line; line = strchr(line, '\n')) {
		size_t len;
		cJSON *o;

		line += *line == '\n';
		len = strcspn(line, "\n");
		o = cJSON_ParseWithLength(line, len);
		if (o && to)
			hide_json(&b->hide, to, o);
		else if (o)
			hide_learn(&b->hide, o);
		cJSON_Delete(o);
	}
}

/* Adds the JSON to the archive as the file @name. */
static void put_json(struct bugreport *b, struct text_out *json, const char *name, const char *what)
{
	CLEANUP(freep) char *text = NULL;
	struct text t;
	size_t len;

	if (text_take(json, &text, &len) < 0 || !text_begin(&t))
		return;
	fprintf(t.f, "%s\n", text);
	text_end(b, &t, name, what);
}

static void put_status(struct bugreport *b, const cJSON *status)
{
	struct text_out json = { 0 };

	if (!status)
		return;
	json_put_on_lines(&json);
	hide_json(&b->hide, &json, status);
	put_json(b, &json, "status.json", "kindling status, with numbers for names");
}

static void put_doctor(struct bugreport *b, const char *lines)
{
	struct text_out json = { 0 };

	json_put_on_lines(&json);
	json_begin_list(&json, NULL);
	doctor_each(b, &json, lines);
	json_end_list(&json);
	put_json(b, &json, "doctor.json",
		 "kindling doctor of every JVM that this user may inspect");
}

static void put_metrics(struct bugreport *b)
{
	struct reply reply;
	struct text t;

	if (client_look("GET", "/metrics", &reply) != CLI_OK)
		return;
	if (text_begin(&t)) {
		hide_metrics(t.f, reply.body);
		text_end(b, &t, "metrics.txt", "what kindlingd counts");
	}
	reply_free(&reply);
}

static void put_log(struct bugreport *b)
{
	char program[] = "journalctl", unit[] = "--unit=kindlingd", lines[] = "--lines=" LOG_LINES;
	char format[] = "--output=cat", pager[] = "--no-pager", quiet[] = "--quiet";
	char *argv[] = { program, unit, lines, format, pager, quiet, NULL };
	CLEANUP(freep) char *text = output_of(argv);
	struct text t;

	if (!text || !*text || !text_begin(&t))
		return;
	hide_log(&b->hide, t.f, text);
	text_end(b, &t, "log.txt", "the last " LOG_LINES " lines of the log of kindlingd");
}

/* ---- the archive ----------------------------------------------------------------------------- */

static void put_all(struct bugreport *b)
{
	CLEANUP(freep) char *doctor = ask_doctor();
	cJSON *status = NULL;
	struct reply reply;

	if (client_look("GET", "/v1/status?all=1", &reply) == CLI_OK) {
		status = cJSON_Parse(reply.body);
		reply_free(&reply);
	}
	hide_learn(&b->hide, json_get(status, "targets"));
	hide_learn(&b->hide, json_get(status, "sinks"));
	doctor_each(b, NULL, doctor);
	cJSON_DeleteItemFromObject(status, "blocked"); /* it has names of classes and images */
	put_version(b, status);
	put_system(b);
	put_settings(b);
	put_status(b, status);
	put_metrics(b);
	put_doctor(b, doctor);
	put_log(b);
	cJSON_Delete(status);
}

static int open_output(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0) {
		fputs("kindling bugreport: ", stderr);
		print_text(stderr, path);
		fprintf(stderr, ": %s\n", strerror(errno));
	}
	return fd;
}

int command_bugreport(int argc, char **argv)
{
	static struct bugreport b = { .config = "/etc/kindling/kindlingd.yaml" };
	char standard[96];
	time_t now = time(NULL);
	struct tm tm;
	int fd, r = cli_parse(&usage_bugreport, argc, argv, &b);

	if (r >= 0)
		return r;
	if (optind < argc)
		return cli_wrong("bugreport", "it takes no TARGET");
	strftime(b.prefix, sizeof(b.prefix), "kindling-bugreport-%Y%m%d-%H%M%S",
		 localtime_r(&now, &tm));
	snprintf(standard, sizeof(standard), "%s.tar.gz", b.prefix);
	if (!b.output)
		b.output = standard;
	fd = open_output(b.output);
	if (fd < 0)
		return CLI_FAILED;
	b.tar = tar_new(fd, (uint64_t)now);
	if (!b.tar)
		return CLI_FAILED;
	put_all(&b);
	r = tar_end(b.tar);
	hide_deinit(&b.hide);
	if (r < 0) {
		fprintf(stderr, "kindling bugreport: it could not be written\n");
		(void)unlink(b.output);
		return CLI_FAILED;
	}
	print_text(stdout, b.output);
	printf(" contains\n%s"
	       "There are no stacks, command lines, environments or passwords in it, and numbers for names. "
	       "Look through it before you give it away.\n",
	       b.list);
	return CLI_OK;
}
