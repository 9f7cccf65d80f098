/*
 * The command `check`: runs the checks that an attach runs, among them where the library can be
 * placed, and prints their results. Unlike in an attach all of them run, even after one has failed.
 * Nothing is sent to the target and nothing is left in it.
 */
#include "injector/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- where the library would be placed ------------------------------------------------------- */

static int check_place(struct inject *in, const char **ret_ok)
{
	enum inject_strategy strategy;
	const char *against = NULL;
	static char text[80];
	int r;

	if (in->root_dfd < 0)
		return fault_set(in->fault, EACCES, FAULT_PLACEMENT,
				 "the JVM's /tmp cannot be read: ");
	r = files_as_target(in);
	files_as_root();
	if (r < 0)
		return fault_set(in->fault, EACCES, FAULT_PLACEMENT, "only root can check this: ");
	r = place_plan(in, &strategy, &against);
	if (r < 0) {
		in->fault->flags |= FAULT_PERMANENT; /* the check was made, and it failed; only
						      * without this flag does -EACCES mean that it
						      * could not be made */
		return r;
	}
	if (strategy == INJECT_MOUNT) {
		snprintf(text, sizeof(text),
			 "/tmp is %s, so the agent's library is mounted there while it is loaded",
			 against);
		*ret_ok = text;
	} else if (strategy == INJECT_OVER) {
		*ret_ok = "/tmp is not writable, so a small tmpfs covers it during the attach";
	}
	return 0;
}

/* ---- printing ------------------------------------------------------------------------------- */

enum verdict { VERDICT_OK, VERDICT_NO, VERDICT_UNKNOWN };

static void check_put_json(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putchar('\\');
		putchar((unsigned char)*s < 0x20 ? ' ' : *s);
	}
	putchar('"');
}

static void check_print(bool json, const char *name, enum verdict verdict, const char *finding,
			const char *change)
{
	static const char *const words[] = { "ok", "no", "unknown" };

	if (!json) {
		printf("%-8s %-9s %s%s%s\n", words[verdict], name, finding,
		       change ? ". What to do: " : "", change ? change : "");
		return;
	}
	printf("{\"check\":\"%s\",\"verdict\":\"%s\",\"finding\":", name, words[verdict]);
	check_put_json(finding);
	fputs(",\"change\":", stdout);
	if (change)
		check_put_json(change);
	else
		fputs("null", stdout);
	puts("}");
}

/* A check that this process lacks the rights for is unknown, not failed. */
static enum verdict check_verdict_of(int r, const struct fault *f)
{
	if (r == 0)
		return VERDICT_OK;
	return (r == -EACCES || r == -EPERM) && !(f->flags & FAULT_PERMANENT) ? VERDICT_UNKNOWN
									      : VERDICT_NO;
}

static const char *check_rights_needed(void)
{
	return geteuid()
		       ? "run this command as root"
		       : "run this command with CAP_SYS_PTRACE; without it this root cannot look into the process";
}

static enum verdict check_report(bool json, const struct check *c, int r, const struct fault *f,
				 const char *found)
{
	enum verdict verdict = check_verdict_of(r, f);

	if (verdict == VERDICT_OK)
		check_print(json, c->name, verdict, found ? found : c->ok, NULL);
	else if (verdict == VERDICT_NO)
		check_print(json, c->name, verdict, f->what, c->change);
	else
		check_print(json, c->name, verdict, f->what,
			    c->needs ? c->needs : check_rights_needed());
	return verdict;
}

void check_report_unopened(bool json, const char *name, const struct fault *f)
{
	const struct check c = { .name = name,
				 .ok = "",
				 .change = "name a process that is running" };

	(void)check_report(json, &c, -f->code, f, NULL);
}

static enum verdict check_worse(enum verdict a, enum verdict b)
{
	return a == VERDICT_NO || b == VERDICT_OK ? a : b;
}

int check_all(struct inject *in, bool json)
{
	struct check place = {
		.name = "place",
		.ok = "the agent's library can be placed in the JVM's /tmp",
		.change =
			"give the container a writable /tmp, such as a tmpfs, or set attach.tmpfs_over_tmp: true"
	};
	enum verdict all = VERDICT_OK;
	struct fault f;
	int r;

	in->fault = &f;
	for (size_t i = 0; i < preflight_check_count; i++) {
		f = (struct fault){ 0 };
		in->found = NULL;
		r = preflight_checks[i].run(in);
		all = check_worse(all, check_report(json, &preflight_checks[i], r, &f, in->found));
		if (r == -ESRCH)
			return VERDICT_NO; /* the process has ended: there is nothing to check */
	}
	f = (struct fault){ 0 };
	r = check_place(in, &place.ok);
	if (f.code == ENOTDIR || f.code == ELOOP || strncmp(f.what, "other users", 11) == 0)
		place.change =
			"remove /tmp/kindling in the JVM's container; kindling did not create it";
	return (int)check_worse(all, check_report(json, &place, r, &f, NULL));
}
