/* See crash.h. */
#include "daemon/target/crash.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "daemon/core/subuids.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/replace.h"
#include "daemon/ground/utf8.h"

/* Writes the owner of @jvm, who may have COHORTS_OWN cohorts in the table. In Kubernetes that is
 * the namespace, which can have any number of containers; else the container, or else the user. */
static void crash_owner(const struct jvm *jvm, char ret[COHORT_OWNER])
{
	const char *slash = strchr(jvm->pod, '/');

	if (slash)
		snprintf(ret, COHORT_OWNER, "%.*s", (int)(slash - jvm->pod), jvm->pod);
	else if (jvm->container_id[0])
		snprintf(ret, COHORT_OWNER, "%s",
			 jvm->container[0] ? jvm->container : jvm->container_id);
	else
		snprintf(ret, COHORT_OWNER, "uid %u", subuids_owner(jvm->uid));
}

/* Writes "of uid 0 in prod/shop", which follows the kind of JVM. If the text is too long the
 * kind is cut. */
static void crash_owner_text(const struct jvm *jvm, char *ret, size_t size)
{
	const char *container = jvm->container[0] ? jvm->container : jvm->container_id;
	const char *slash = strchr(jvm->pod, '/');
	int namespace_len = slash ? (int)(slash - jvm->pod) + 1 : 0;

	snprintf(ret, size, "of uid %u%s%.*s%s", jvm->uid, *container ? " in " : "", namespace_len,
		 jvm->pod, container);
}

static void crash_cohort(const struct jvm *jvm, char ret[COHORT_SIZE])
{
	char version[440];

	snprintf(version, sizeof(version), "kindling " KINDLING_VERSION ", ");
	crash_owner_text(jvm, version + strlen(version), sizeof(version) - strlen(version));
	if (jvm->image_digest[0]) /* the same for all names of an image */
		snprintf(ret, COHORT_SIZE, "image %.80s, %.80s, %s", jvm->image_digest, jvm->jdk,
			 version);
	else if (jvm->image[0]) /* a tag may be another image tomorrow */
		snprintf(ret, COHORT_SIZE, "image %.150s, libjvm of %.60s, %.80s, %s", jvm->image,
			 jvm->libjvm_build, jvm->jdk, version);
	else
		snprintf(ret, COHORT_SIZE, "%.90s with %.100s of %.60s, %.80s, %s", jvm->name,
			 jvm->libjvm, jvm->libjvm_build, jvm->jdk, version);
}

int crash_signal(int status)
{
	static const int signals[] = { SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGSYS };

	for (size_t i = 0; WIFSIGNALED(status) && i < sizeof(signals) / sizeof(signals[0]); i++)
		if (WTERMSIG(status) == signals[i])
			return signals[i];
	return 0;
}

static struct cohort *crash_find_key(const struct crashes *c, const char *name)
{
	for (unsigned i = 0; i < c->n; i++)
		if (strcmp(c->list[i].name, name) == 0)
			return &c->list[i];
	return NULL;
}

static unsigned crash_count_of(const struct crashes *c, const char *owner)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n; i++)
		n += strcmp(c->list[i].owner, owner) == 0;
	return n;
}

static const char *crash_owner_of_most(const struct crashes *c)
{
	const char *most = c->list[0].owner;

	for (unsigned i = 1; i < c->n; i++)
		if (crash_count_of(c, c->list[i].owner) > crash_count_of(c, most))
			most = c->list[i].owner;
	return most;
}

static struct cohort *crash_first_to_expire(struct crashes *c, const char *owner)
{
	struct cohort *first = NULL;

	for (unsigned i = 0; i < c->n; i++)
		if (strcmp(c->list[i].owner, owner) == 0 &&
		    (!first || c->list[i].until_real_ns < first->until_real_ns))
			first = &c->list[i];
	return first;
}

/* Makes a place in the table for another cohort of @owner. */
static struct cohort *crash_make_room(struct crashes *c, const char *owner)
{
	if (!c->list)
		c->list = calloc(COHORTS_MAX, sizeof(*c->list));
	if (!c->list)
		return NULL;
	if (crash_count_of(c, owner) >= COHORTS_OWN)
		return crash_first_to_expire(c, owner);
	if (c->n < COHORTS_MAX)
		return &c->list[c->n++];
	return crash_first_to_expire(c, crash_owner_of_most(c));
}

/* ---- the file: a line each, "until crashes<tab>cohort<tab>reason<tab>owner" ---- */

static bool crash_read_line(char *line, struct cohort *ret)
{
	char *name = strchr(line, '\t'), *reason = name ? strchr(name + 1, '\t') : NULL;
	char *owner = reason ? strchr(reason + 1, '\t') : NULL;

	/* older versions wrote lines without an owner; their crashes say nothing about this one */
	if (!owner || sscanf(line, "%" SCNu64 " %u", &ret->until_real_ns, &ret->crashes) != 2)
		return false;
	*name++ = '\0';
	*reason++ = '\0';
	*owner++ = '\0';
	owner[strcspn(owner, "\n")] = '\0';
	/* the texts came from containers, and are shown to users: they are cleaned again */
	utf8_copy(ret->name, sizeof(ret->name), name, strlen(name));
	utf8_copy(ret->reason, sizeof(ret->reason), reason, strlen(reason));
	utf8_copy(ret->owner, sizeof(ret->owner), owner, strlen(owner));
	return true;
}

void crashes_open(struct crashes *c, const char *dir, uint64_t real_ns)
{
	char line[1024];
	FILE *f;

	*c = (struct crashes){ 0 };
	if (!*dir)
		return;
	snprintf(c->path, sizeof(c->path), "%s/blocked", dir);
	f = fopen(c->path, "re");
	while (f && c->n < COHORTS_MAX && fgets(line, sizeof(line), f)) {
		struct cohort x = { 0 }, *room;

		if (!crash_read_line(line, &x) || x.until_real_ns <= real_ns)
			continue;
		room = crash_make_room(c, x.owner);
		if (room)
			*room = x;
	}
	if (f)
		fclose(f);
}

static int crash_write_file(const struct crashes *c)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	for (unsigned i = 0; i < c->n; i++)
		fprintf(f, "%" PRIu64 " %u\t%s\t%s\t%s\n", c->list[i].until_real_ns,
			c->list[i].crashes, c->list[i].name, c->list[i].reason, c->list[i].owner);
	return fclose(f) != 0 ? -ENOMEM : replace_path(c->path, 0666, true, text, len);
}

static void crash_save(const struct crashes *c)
{
	int r = c->path[0] ? crash_write_file(c) : 0;

	if (r < 0)
		log_warn("target.crashes", "file=%s error=%s", c->path, log_str(strerror(-r)));
}

void crashes_close(struct crashes *c)
{
	free(c->list);
	c->list = NULL;
	c->n = 0;
}

/* ---- blocks --------------------------------------------------------------------------------- */

void crash_block(struct crashes *c, const struct jvm *jvm, const char *reason,
		 uint64_t until_real_ns)
{
	char name[COHORT_SIZE], owner[COHORT_OWNER];
	struct cohort *x;

	crash_cohort(jvm, name);
	x = crash_find_key(c, name);
	if (!x) {
		crash_owner(jvm, owner);
		x = crash_make_room(c, owner);
		if (!x)
			return;
		memset(x, 0, sizeof(*x));
		memcpy(x->name, name, sizeof(name));
		memcpy(x->owner, owner, sizeof(owner));
	}
	snprintf(x->reason, sizeof(x->reason), "%s", reason);
	x->until_real_ns = until_real_ns;
	x->crashes++;
	crash_save(c);
}

const struct cohort *crash_find(const struct crashes *c, const struct jvm *jvm, uint64_t real_ns)
{
	char name[COHORT_SIZE];
	const struct cohort *x;

	if (!c->n)
		return NULL;
	crash_cohort(jvm, name);
	x = crash_find_key(c, name);
	return x && x->until_real_ns > real_ns ? x : NULL;
}

void crash_expire(struct crashes *c, uint64_t real_ns, uint64_t most_ns)
{
	bool changed = false;

	for (unsigned i = 0; i < c->n;) {
		struct cohort *x = &c->list[i];

		if (x->until_real_ns <= real_ns) {
			*x = c->list[--c->n];
			changed = true;
			continue;
		}
		if (x->until_real_ns - real_ns > most_ns) {
			x->until_real_ns = real_ns + most_ns;
			changed = true;
		}
		i++;
	}
	if (changed)
		crash_save(c);
}

void crash_explain(const struct cohort *cohort, struct fault *ret)
{
	time_t s = (time_t)(cohort->until_real_ns / NS_PER_S);
	struct tm tm = { 0 };
	char when[32];

	gmtime_r(&s, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%MZ", &tm);
	*ret = (struct fault){ 0 };
	fault_set(ret, ECANCELED, FAULT_CRASH, "left alone until %s, for %.75s", when,
		  cohort->reason);
}
