/*
 * kindling doctor: shows the preflight's checks of a JVM one by one, and its state in kindlingd.
 * The checks are the injector's own: `kindling-inject PID check json` runs them, and neither sends
 * anything to the JVM nor leaves anything behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/doctor_filter.h"
#include "daemon/core/config.h"
#include "daemon/discovery/jvm.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"
#include "daemon/report/json_out.h"

#define JVMS_MAX  1024
#define LINES_MAX 64
#define AHEAD_MAX 8 /* injectors that run at a time */
#define OWN_MAX	  8 /* checks that are not the injector's */

#define LABEL_WIDTH 21 /* columns of a label such as "  ok       profilers " */

extern char **environ;

struct doctor {
	const char *injector;
	cJSON *status; /* kindlingd's answer; NULL = there is none */
	bool denied; /* kindlingd may be there, but this user may not ask it */
	bool all, json, read_seccomp;
	unsigned unseen; /* processes that may be JVMs but cannot be inspected */
	int worst; /* exit status so far */
};

/* A JVM that is checked, or soon will be. */
struct doctor_jvm {
	pid_t pid, child; /* child: the injector; 0 = not started */
	FILE *from; /* reads the injector's results; NULL = not started */
	int error; /* errno if the injector could not be started */
	char name[sizeof(((struct jvm *)NULL)->name)];
};

struct doctor_checks {
	struct doctor_check list[LINES_MAX + OWN_MAX];
	unsigned n;
};

static const struct usage_row options[] = {
	OPTION_FLAG('a', "all", struct doctor, all, "check every JVM of this host"),
	OPTION_FLAG(
		's', "read-seccomp", struct doctor, read_seccomp,
		"read the seccomp filters of the JVM as an attach does, which stops one of its "
		"sleeping threads for about 50 us. Without this option the filters are known only "
		"if the container's bundle or the systemd unit describes them"),
	OPTION_FLAG('j', "json", struct doctor, json,
		    "print one JSON object for each JVM, one per line"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_doctor = {
	"doctor",
	"can a JVM be profiled? If not: why, and what to do",
	"kindling doctor [OPTION...] [TARGET]",
	"Checks whether a JVM can be profiled, without attaching to it: one line for each check, with ok, no or "
	"unknown, what was found, and what to do about it. If kindlingd runs, the last line is "
	"what it knows about the JVM. Works without kindlingd too. Without a TARGET it checks all "
	"JVMs of this host.\n"
	"TARGET is a pid, a container id, a container, a pod or a part of a name from `kindling status`.",
	options,
	"Exit status: 0 all of them can be profiled, 1 one cannot, or not everything could be checked.",
	"sudo kindling doctor 4711",
};

/* ---- the injector's checks ------------------------------------------------------------------ */

static void command_doctor_start(const struct doctor *d, struct doctor_jvm *j)
{
	char number[16], check[] = "check", json[] = "json", seccomp[] = "read-seccomp",
			 cover[] = "over_tmp=1";
	char *argv[] = { (char *)(uintptr_t)d->injector, number, check, json, NULL, NULL, NULL };
	size_t n = 4;
	posix_spawn_file_actions_t actions;
	int fds[2];

	if (d->read_seccomp)
		argv[n++] = seccomp;
	if (cJSON_IsTrue(json_get(json_get(d->status, "attach"), "tmpfs_over_tmp")))
		argv[n++] = cover;
	snprintf(number, sizeof(number), "%d", j->pid);
	if (pipe2(fds, O_CLOEXEC) < 0) {
		j->error = errno;
		return;
	}
	posix_spawn_file_actions_init(&actions);
	j->error = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	if (j->error == 0)
		j->error = posix_spawn(&j->child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	j->from = j->error ? NULL : fdopen(fds[0], "re");
	if (!j->from)
		close(fds[0]);
}

/* Ends the injector's turn; it has a deadline of its own. */
static void command_doctor_end(struct doctor_jvm *j)
{
	if (j->from)
		fclose(j->from);
	if (j->child > 0)
		(void)waitpid(j->child, NULL, 0);
	j->from = NULL;
	j->child = 0;
}

/* @change: NULL = there is nothing to do. */
static void add_check(struct doctor_checks *to, const char *name, const char *verdict,
		      const char *finding, const char *change)
{
	struct doctor_check *c = &to->list[to->n];

	if (to->n == ARRAY_SIZE(to->list))
		return;
	to->n++;
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->verdict, sizeof(c->verdict), "%s", verdict);
	snprintf(c->finding, sizeof(c->finding), "%s", finding);
	snprintf(c->change, sizeof(c->change), "%s", change ? change : "");
}

/* Adds a check that the injector printed. */
static void add_injectors_check(const char *line, pid_t pid, struct doctor_checks *to)
{
	cJSON *c = cJSON_Parse(line);
	struct doctor_check *last;

	if (c) {
		add_check(to, json_text_of(c, "check"), json_text_of(c, "verdict"),
			  json_text_of(c, "finding"), json_text_of(c, "change"));
		last = &to->list[to->n - 1];
		if (strcmp(last->name, "seccomp") == 0 && strcmp(last->verdict, "unknown") == 0)
			doctor_look_at_filter(pid, last);
	}
	cJSON_Delete(c);
}

static void run_checks(const struct doctor *d, struct doctor_jvm *j, struct doctor_checks *list)
{
	char line[1024], why[400];

	for (int i = 0; j->from && i < LINES_MAX && fgets(line, sizeof(line), j->from); i++)
		add_injectors_check(line, j->pid, list);
	if (j->error)
		snprintf(why, sizeof(why), "%s could not be started: %s", d->injector,
			 strerror(j->error));
	else
		snprintf(why, sizeof(why), "%s printed nothing", d->injector);
	command_doctor_end(j);
	if (list->n == 0)
		add_check(list, "injector", "unknown", why,
			  "install kindling-inject beside kindling");
}

/* ---- the daemon's state ---------------------------------------------------------------------- */

static const cJSON *command_doctor_known(const struct doctor *d, pid_t pid)
{
	const cJSON *t, *found = NULL;

	cJSON_ArrayForEach(t, json_get(d->status, "targets"))
	{
		if ((pid_t)json_number_of(t, "pid") == pid)
			found = t;
	}
	return found;
}

static const char *change_of(const cJSON *t)
{
	const char *step = json_text_of(t, "reason_step");

	if (strcmp(step, "wish") == 0)
		return "kindling attach PID";
	if (strcmp(step, "rule") == 0)
		return "change targets.rules in the settings of kindlingd";
	if (strcmp(step, "budget") == 0)
		return "raise targets.max, or run kindling attach PID";
	if (strcmp(step, "profiler") == 0)
		return "set targets.foreign_profilers: share, or run kindling attach PID";
	if (strcmp(step, "crash") == 0)
		return "wait until then, or run kindling attach PID";
	if (strcmp(json_text_of(t, "state"), "streaming") == 0 && *json_text_of(t, "reason"))
		return "remove the cause (docs/reasons.md), then run kindling detach PID and "
		       "kindling attach PID";
	return NULL;
}

/* Writes which events are collected, and which are not and why: "cpu,lock; lock: monitors are
 * left out ...". */
static void collected_text(const cJSON *t, char *ret, size_t size)
{
	const cJSON *e;
	size_t len = 0;

	ret[0] = '\0';
	cJSON_ArrayForEach(e, json_get(t, "events")) if (cJSON_IsString(e) && len < size) len +=
		(size_t)snprintf(ret + len, size - len, "%s%.16s", len ? "," : "; collects ",
				 e->valuestring);
	cJSON_ArrayForEach(e, json_get(t, "notes")) if (len < size) len +=
		(size_t)snprintf(ret + len, size - len, "; %.31s: %.199s", json_text_of(e, "step"),
				 json_text_of(e, "what"));
}

/* Did the kernel refuse kindlingd access to process @pid? */
static bool is_denied(const cJSON *status, pid_t pid)
{
	const cJSON *denied = json_get(json_get(status, "discovery"), "denied"), *e;

	cJSON_ArrayForEach(e, json_get(denied, "pids")) if (cJSON_IsNumber(e) &&
							    e->valuedouble == pid) return true;
	return false;
}

static void add_daemon(const struct doctor *d, pid_t pid, struct doctor_checks *list)
{
	const cJSON *t = command_doctor_known(d, pid);
	const char *state = json_text_of(t, "state"), *reason = json_text_of(t, "reason");
	const char *history = json_text_of(json_get(d->status, "store"), "note");
	bool well = (strcmp(state, "streaming") == 0 && !*reason) || strcmp(state, "found") == 0 ||
		    strcmp(state, "injecting") == 0;
	char text[1600], again[80] = "", collected[1024];

	if (!t && kill(pid, 0) < 0 && errno == ESRCH)
		return; /* another check reports that the process has ended */
	if (d->denied) {
		snprintf(text, sizeof(text),
			 "permission denied: you may not use the socket of kindlingd, %.200s",
			 cli_socket);
		add_check(list, "daemon", "unknown", text,
			  "run this command with sudo, or join the group kindling");
		return;
	}
	if (!d->status) {
		snprintf(text, sizeof(text), "no kindlingd answers on %.200s", cli_socket);
		add_check(list, "daemon", "unknown", text,
			  "start it: sudo systemctl start kindlingd (or: sudo kindlingd)");
		return;
	}
	if (!t && is_denied(d->status, pid)) {
		add_check(
			list, "daemon", "no",
			"the kernel does not let kindlingd read the memory map of this process",
			"give kindlingd CAP_SYS_PTRACE, and look for a security module that forbids it");
		return;
	}
	if (!t) {
		add_check(list, "daemon", "unknown", "kindlingd has not found this JVM yet",
			  "wait: a running JVM is found within discovery.scan_interval");
		return;
	}
	if (cJSON_IsNumber(json_get(t, "retry_in_s")))
		snprintf(again, sizeof(again), "; attempt %.0f has failed, the next is in %.1f s",
			 json_number_of(t, "attempts"), json_number_of(t, "retry_in_s"));
	collected_text(t, collected, sizeof(collected));
	snprintf(text, sizeof(text), "%s%s%.250s%s%s%s%.250s", state, *reason ? ": " : "", reason,
		 again, strcmp(state, "streaming") == 0 ? collected : "", *history ? "; " : "",
		 history);
	add_check(list, "daemon", well ? "ok" : "no", text, change_of(t));
}

static bool is_collected(const cJSON *t, const char *event)
{
	const cJSON *e;

	cJSON_ArrayForEach(e, json_get(t, "events"))
	{
		if (cJSON_IsString(e) && strcmp(e->valuestring, event) == 0)
			return true;
	}
	return false;
}

/* Says whether there are times off the CPU: a JVM can be profiled without them. */
static void add_offcpu(const struct doctor *d, pid_t pid, struct doctor_checks *list)
{
	const cJSON *t = command_doctor_known(d, pid), *engine = json_get(d->status, "offcpu");
	const char *state = json_text_of(engine, "state");
	char text[600];

	if (!t || !*state)
		return;
	if (strcmp(state, "refused") == 0) {
		snprintf(text, sizeof(text), "times off the CPU cannot be collected: %.500s",
			 json_text_of(engine, "why"));
		add_check(list, "offcpu", "ok", text, NULL);
	} else if (strcmp(state, "resting") == 0) {
		add_check(list, "offcpu", "ok",
			  "times off the CPU are collected part of the time: this host switches "
			  "between threads too often",
			  NULL);
	} else if (is_collected(t, "offcpu")) {
		add_check(list, "offcpu", "ok", "times off the CPU are collected", NULL);
	} else if (!*json_text_of(t, "reason")) {
		add_check(list, "offcpu", "ok", "times off the CPU can be collected, and are not",
			  "add offcpu: {} to events in kindlingd.yaml, or run kindling record PID "
			  "-e offcpu -o FILE");
	}
}

/* For a JVM in a container, adds the check "names": does the runtime answer, or may labels of the
 * pod be missing? */
static void add_names(const struct doctor *d, pid_t pid, struct doctor_checks *list)
{
	const cJSON *names = json_get(d->status, "names");
	const cJSON *t = command_doctor_known(d, pid);
	char text[400];

	if (!cJSON_IsObject(names) || !*json_text_of(t, "container_id"))
		return;
	if (strcmp(json_text_of(names, "state"), "failing") != 0) {
		snprintf(text, sizeof(text), "the container runtime answers at %.110s",
			 json_text_of(names, "cri"));
		add_check(list, "names", "ok", text, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%.250s; labels and annotations of its pod may be unknown",
		 json_text_of(names, "why"));
	add_check(list, "names", "unknown", text,
		  "check names.cri in the settings, and that the runtime runs");
}

/* ---- one JVM -------------------------------------------------------------------------------- */

/* The verdict of all checks: "ok", "no" or "unknown". If checks of kindlingd itself (daemon, names)
 * are unknown, that does not count against the JVM. */
static const char *command_doctor_verdict_of(const struct doctor_checks *checks)
{
	const char *all = "ok";

	for (unsigned i = 0; i < checks->n; i++) {
		const struct doctor_check *c = &checks->list[i];

		if (strcmp(c->verdict, "no") == 0)
			return "no";
		if (strcmp(c->verdict, "unknown") == 0 && strcmp(c->name, "daemon") != 0 &&
		    strcmp(c->name, "names") != 0)
			all = "unknown";
	}
	return all;
}

static void print_one(const struct doctor_jvm *j, const struct doctor_checks *checks,
		      const char *verdict)
{
	printf("%d%s", j->pid, *j->name ? " " : "");
	print_text(stdout, j->name);
	if (strcmp(verdict, "ok") == 0)
		puts(": can be profiled");
	else if (strcmp(verdict, "no") == 0)
		puts(": cannot be profiled at present");
	else
		puts(": not everything could be checked");
	for (unsigned i = 0; i < checks->n; i++) {
		const struct doctor_check *c = &checks->list[i];
		char label[LABEL_WIDTH + 8], text[2048];

		snprintf(label, sizeof(label), "  %-8.8s %-9.9s ", c->verdict, c->name);
		snprintf(text, sizeof(text), "%s%s%s", c->finding,
			 *c->change ? ". What to do: " : "", c->change);
		print_labelled(stdout, label, text, LABEL_WIDTH, terminal_width());
	}
}

/* Prints the same as JSON. 0 or -ENOMEM. */
static int command_doctor_print_json(const struct doctor_jvm *j, const struct doctor_checks *checks,
				     const char *verdict)
{
	CLEANUP(freep) char *text = NULL;
	struct text_out json = { 0 };
	size_t len;

	json_begin_object(&json, NULL);
	json_add_i64(&json, "pid", j->pid);
	json_add_string(&json, "name", j->name);
	json_begin_list(&json, "checks");
	for (unsigned i = 0; i < checks->n; i++) {
		const struct doctor_check *c = &checks->list[i];

		json_begin_object(&json, NULL);
		json_add_string(&json, "check", c->name);
		json_add_string(&json, "verdict", c->verdict);
		json_add_string(&json, "finding", c->finding);
		json_add_string_or_null(&json, "change", c->change);
		json_end_object(&json);
	}
	json_end_list(&json);
	json_add_string(&json, "verdict", verdict);
	json_end_object(&json);
	if (text_take(&json, &text, &len) < 0)
		return -ENOMEM;
	puts(text);
	return 0;
}

static void command_doctor_look_at(struct doctor *d, struct doctor_jvm *j)
{
	static struct doctor_checks checks;
	const char *verdict;

	checks.n = 0;
	run_checks(d, j, &checks);
	add_daemon(d, j->pid, &checks);
	add_offcpu(d, j->pid, &checks);
	add_names(d, j->pid, &checks);
	verdict = command_doctor_verdict_of(&checks);
	if (strcmp(verdict, "ok") != 0)
		d->worst = CLI_FAILED;
	if (!d->json || command_doctor_print_json(j, &checks, verdict) < 0)
		print_one(j, &checks, verdict);
	fflush(stdout);
}

/* Prints the JVMs in their order; injectors for the next ones run meanwhile. */
static void command_doctor_look_at_each(struct doctor *d, struct doctor_jvm *list, unsigned n)
{
	unsigned started = 0;

	for (unsigned i = 0; i < n && !cli_interrupted; i++) {
		while (started < n && started < i + AHEAD_MAX)
			command_doctor_start(d, &list[started++]);
		command_doctor_look_at(d, &list[i]);
	}
	for (unsigned i = 0; i < started; i++) /* only after an interrupt */
		command_doctor_end(&list[i]);
}

/* ---- choosing JVMs --------------------------------------------------------------------------- */

/* Is a process that cannot be inspected called java? */
static bool is_called_java(int proc_dfd, pid_t pid)
{
	CLEANUP(fd_closep) int dfd = proc_open(proc_dfd, pid);
	struct proc_stat stat = { 0 };
	char text[1024];

	return dfd >= 0 && proc_read(dfd, "stat", text, sizeof(text)) > 0 &&
	       proc_parse_stat(text, &stat) && strncmp(stat.comm, "java", 4) == 0;
}

/* Finds the JVMs of this host, and processes that may be JVMs. Returns their number. */
static unsigned command_doctor_find(struct doctor *d, struct doctor_jvm *list)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;

	while (proc && n < JVMS_MAX && !cli_interrupted && (entry = readdir(proc))) {
		const char *name = "java";
		struct jvm jvm;
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		int kind;

		if (*end || pid <= 0)
			continue;
		kind = jvm_probe(dirfd(proc), (pid_t)pid, &jvm);
		if (kind == -EACCES || kind == -EPERM)
			d->unseen++;
		if (kind == JVM_READY || kind == JVM_YOUNG)
			name = jvm.name;
		else if (kind >= 0 || kind == -ESRCH || !is_called_java(dirfd(proc), (pid_t)pid))
			continue;
		list[n].pid = (pid_t)pid;
		snprintf(list[n++].name, sizeof(list->name), "%s", name);
	}
	if (proc)
		closedir(proc);
	return n;
}

static void command_doctor_look_at_all(struct doctor *d)
{
	CLEANUP(freep) struct doctor_jvm *list = calloc(JVMS_MAX, sizeof(*list));
	unsigned n = list ? command_doctor_find(d, list) : 0;

	command_doctor_look_at_each(d, list, n);
	if (n == 0)
		fputs("kindling: no JVM is running here\n", stderr);
	if (d->unseen) {
		fprintf(stderr,
			"kindling: permission denied to look at %u process%s that may be JVMs; run this command %s\n",
			d->unseen, d->unseen == 1 ? "" : "es",
			geteuid() ? "with sudo" : "with CAP_SYS_PTRACE");
		d->worst = CLI_FAILED;
	}
}

static void look_at_word(struct doctor *d, const char *word)
{
	CLEANUP(freep) struct jvm *found = calloc(CANDIDATES_MAX, sizeof(*found));
	CLEANUP(freep) struct doctor_jvm *list = calloc(CANDIDATES_MAX, sizeof(*list));
	bool number =
		strspn(word, "0123456789") == strlen(word) && strlen(word) < 10 && atoi(word) > 0;
	unsigned n = found && list ? own_find(word, found) : 0;

	for (unsigned i = 0; i < n; i++) {
		list[i].pid = found[i].pid;
		memcpy(list[i].name, found[i].name, sizeof(list[i].name));
	}
	if (n == 0 && number &&
	    list) /* no JVM, or one that cannot be seen: the checks tell which */
		list[n++].pid = (pid_t)atoi(word);
	command_doctor_look_at_each(d, list, n);
	if (n)
		return;
	fputs("kindling: no JVM on this host is called ", stderr);
	print_text(stderr, word);
	fputs(geteuid() ? "; JVMs of other users are seen by root only, so try sudo\n" : "\n",
	      stderr);
	d->worst = CLI_FAILED;
}

static cJSON *ask_daemon(bool *ret_denied)
{
	cJSON *status = NULL;
	struct reply reply;

	int r = client_look("GET", "/v1/status", &reply);

	*ret_denied = r != CLI_OK && reply.denied;
	if (r != CLI_OK)
		return NULL;
	status = cJSON_Parse(reply.body);
	reply_free(&reply);
	return status;
}

int command_doctor(int argc, char **argv)
{
	static struct config config;
	struct doctor d = { .injector = config.injector };
	int r = cli_parse(&usage_doctor, argc, argv, &d);

	if (r >= 0)
		return r;
	if (argc - optind > 1 || (d.all && optind < argc))
		return cli_wrong("doctor", "name one TARGET, or use --all");
	config_defaults(&config);
	cli_catch_interrupt();
	d.status = ask_daemon(&d.denied);
	if (optind < argc)
		look_at_word(&d, argv[optind]);
	else
		command_doctor_look_at_all(&d);
	cJSON_Delete(d.status);
	return d.worst;
}
