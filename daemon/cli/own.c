/*
 * kindling record without kindlingd: runs the same rooms in this process for one JVM, and leaves
 * nothing behind. Needs root to enter the JVM's namespaces.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/cli/cli.h"
#include "daemon/discovery/word.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/host/recording.h"
#include "daemon/report/report.h"

#define ATTACH_NS (15 * NS_PER_S)
#define IDLE_NS	  NS_PER_S /* an idle JVM has no samples that would show that it streams */
#define DOWN_NS	  (10 * NS_PER_S)

/* ---- choosing the JVM ------------------------------------------------------------------------ */

static bool own_is_number(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

unsigned own_find(const char *word, struct jvm *found)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;
	enum word_match best = WORD_PART, m;

	while (proc && (entry = readdir(proc))) {
		struct jvm jvm;
		int kind;

		if (!own_is_number(entry->d_name))
			continue;
		kind = jvm_probe(dirfd(proc), (pid_t)atoi(entry->d_name), &jvm);
		if (kind != JVM_READY && kind != JVM_YOUNG)
			continue;
		m = word_names(&jvm, word);
		if (m < best)
			continue;
		if (m > best)
			n = 0;
		best = m;
		if (n < CANDIDATES_MAX)
			found[n++] = jvm;
	}
	if (proc)
		closedir(proc);
	return n;
}

static bool find_one(const char *word, struct jvm *ret)
{
	CLEANUP(freep) struct jvm *found = calloc(CANDIDATES_MAX, sizeof(*found));
	unsigned n = found ? own_find(word, found) : 0;

	if (n == 1) {
		*ret = found[0];
		return true;
	}
	fputs("kindling: no kindlingd answers on ", stderr);
	print_text(stderr, cli_socket);
	fputs(n ? ", and several JVMs here are called " : ", and no JVM here is called ", stderr);
	print_text(stderr, word);
	fputs(n ? "; name one by its pid:\n" : "\n", stderr);
	for (unsigned i = 0; i < n; i++) {
		fprintf(stderr, "%10d  ", found[i].pid);
		print_text(stderr, found[i].name);
		fputc('\n', stderr);
	}
	return false;
}

/* ---- attach, collect, detach ---------------------------------------------------------------- */

struct own {
	struct loop *loop;
	struct host *host;
	bool down;
};

static void own_on_down(void *userdata)
{
	((struct own *)userdata)->down = true;
}

static bool own_is_attached(const struct target *t, uint64_t since_mono_ns)
{
	return t->state == TARGET_STREAMING &&
	       (t->first_sample_mono_ns || clock_mono_ns() > since_mono_ns + IDLE_NS);
}

static int own_attach(struct own *o, const struct jvm *jvm, struct target **ret)
{
	uint64_t begin = clock_mono_ns();
	struct target *t;
	int r = targets_add(host_targets(o->host), jvm, begin, &t);

	if (r < 0) {
		fprintf(stderr, "kindling: process %d: %s\n", jvm->pid, strerror(-r));
		return CLI_FAILED;
	}
	while (!own_is_attached(t, begin) && clock_mono_ns() < begin + ATTACH_NS &&
	       !cli_interrupted) {
		(void)loop_round(o->loop, 20 * NS_PER_MS);
		if (t->state == TARGET_GONE || t->state == TARGET_DETACHED ||
		    t->state == TARGET_EXCLUDED ||
		    (t->state == TARGET_FAILED && (t->fault.flags & FAULT_PERMANENT)))
			break;
	}
	*ret = t;
	if (t->state == TARGET_STREAMING)
		return CLI_OK;
	fprintf(stderr, "kindling: attaching to process %d failed: ", jvm->pid);
	print_text(stderr, t->fault.code	     ? t->fault.what
			   : t->state == TARGET_GONE ? "it ended"
			   : cli_interrupted	     ? "it was interrupted"
						     : "the JVM did not answer in time");
	fputc('\n', stderr);
	return CLI_FAILED;
}

struct writing {
	const struct record_arguments *arguments;
	const struct profile *profile;
};

static int write_profile(void *userdata, const char *file, unsigned events)
{
	const struct writing *x = userdata;
	const struct record_arguments *a = x->arguments;
	struct report_options options = {
		.threads = a->threads,
		.annotate = a->annotate,
		.idle = a->idle,
		.events = events,
	};
	enum report_format format = (enum report_format)report_format_by_name(a->format);
	size_t len;
	char *out;
	int r;

	r = report_write(x->profile, format, &options, &out, &len);
	if (r < 0) {
		fprintf(stderr, "kindling: the report could not be written: %s\n", strerror(-r));
		return CLI_FAILED;
	}
	r = write_file(file, out, len);
	free(out);
	if (r == CLI_OK)
		output_profile_written(file, a->format, x->profile, &options);
	return r;
}

static int own_collect(struct own *o, const struct record_arguments *a, struct target *t)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	const struct recording_options options = { .interval_ns = a->interval_ns,
						   .events = a->events,
						   .thread = a->thread,
						   .lock_min_ns = a->min_wait_ns,
						   .trace_ids = a->trace_ids };
	struct writing writing = { .arguments = a };
	uint64_t begin = clock_mono_ns(), elapsed = 0;
	char why[200] = "the recording was ended early", notes[400];
	struct recording *rec;
	int r = recording_new(o->host, t, &options, &rec);

	if (r < 0) {
		fprintf(stderr, "kindling: process %d cannot be recorded: %s\n", t->jvm.pid,
			r == -EACCES ? "its owner does not allow all of these events"
				     : strerror(-r));
		return CLI_FAILED;
	}
	while (elapsed < a->duration_ns && !cli_interrupted &&
	       recording_runs(rec, why, sizeof(why))) {
		(void)loop_round(o->loop, 100 * NS_PER_MS);
		elapsed = clock_mono_ns() - begin;
		record_progress(a, (double)elapsed / 1e9, (double)recording_samples(rec));
	}
	if (isatty(STDERR_FILENO))
		fputc('\n', stderr);
	if (elapsed < a->duration_ns)
		record_ended((double)elapsed / 1e9, why);
	record_notes(a, (double)recording_samples(rec), recording_notes(rec, notes, sizeof(notes)));
	recording_end(rec);
	r = recording_profile(rec, &p);
	recording_free(rec);
	writing.profile = p;
	if (r == 0)
		return record_files(a, write_profile, &writing);
	fputs("kindling: no memory for the profile\n", stderr);
	return CLI_FAILED;
}

static int own_record(struct own *o, const struct record_arguments *a, const struct jvm *jvm)
{
	uint64_t deadline;
	struct target *t;
	int r = own_attach(o, jvm, &t);

	if (r == CLI_OK)
		r = own_collect(o, a, t);
	host_shutdown(o->host, own_on_down, o);
	deadline = clock_mono_ns() + DOWN_NS;
	while (!o->down && clock_mono_ns() < deadline)
		(void)loop_round(o->loop, 20 * NS_PER_MS);
	return r;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

int record_by_ourselves(const struct record_arguments *a)
{
	char dir[] = "/tmp/kindling-record-XXXXXX";
	struct own o = { 0 };
	struct config config;
	struct fault f = { 0 };
	struct jvm jvm;
	int r = CLI_FAILED;

	if (geteuid() != 0) {
		fputs("kindling: no kindlingd answers on ", stderr);
		print_text(stderr, cli_socket);
		fputs(". Start it with: sudo systemctl start kindlingd; or use sudo to record without it\n",
		      stderr);
		return CLI_NO_DAEMON;
	}
	if (!find_one(a->target, &jvm))
		return CLI_FAILED;
	if (!mkdtemp(dir)) {
		fprintf(stderr, "kindling: %s: %s\n", dir, strerror(errno));
		return CLI_FAILED;
	}
	(void)signal(SIGPIPE,
		     SIG_IGN); /* writing to a JVM that has ended must not end this process */
	log_set_level(LOG_LEVEL_ERR);
	config_defaults(&config);
	config.events = a->events;
	snprintf(config.wall_threads, sizeof(config.wall_threads), "%s",
		 a->thread ? a->thread : "");
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	if (loop_new(&o.loop) == 0 && host_new(o.loop, &config, false, false, &o.host, &f) == 0)
		r = own_record(&o, a, &jvm);
	else
		fprintf(stderr, "kindling: %s\n", f.code ? f.what : "no memory");
	host_free(o.host);
	loop_free(o.loop);
	if (nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
		fprintf(stderr, "kindling: %s was left behind: %s\n", dir, strerror(errno));
	return r;
}
