/* See crash.h. */
#include "daemon/target/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "daemon/core/clock.h"

void crash_cohort(const struct jvm *jvm, char ret[COHORT_SIZE])
{
	if (jvm->image[0])
		snprintf(ret, COHORT_SIZE, "image %.200s, %.80s, kindling " KINDLING_VERSION,
			 jvm->image, jvm->jdk);
	else
		snprintf(ret, COHORT_SIZE, "%.120s with %.120s, %.80s, kindling " KINDLING_VERSION,
			 jvm->name, jvm->libjvm, jvm->jdk);
}

int crash_signal(int status)
{
	static const int signals[] = { SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGSYS };

	for (size_t i = 0; WIFSIGNALED(status) && i < sizeof(signals) / sizeof(signals[0]); i++)
		if (WTERMSIG(status) == signals[i])
			return signals[i];
	return 0;
}

static struct cohort *find(const struct crashes *c, const char *name)
{
	for (unsigned i = 0; i < c->n; i++)
		if (strcmp(c->list[i].name, name) == 0)
			return &c->list[i];
	return NULL;
}

static struct cohort *make_room(struct crashes *c)
{
	struct cohort *first;

	if (!c->list)
		c->list = calloc(COHORTS_MAX, sizeof(*c->list));
	if (!c->list)
		return NULL;
	if (c->n < COHORTS_MAX)
		return &c->list[c->n++];
	first = c->list;
	for (unsigned i = 1; i < c->n; i++)
		if (c->list[i].until_real_ns < first->until_real_ns)
			first = &c->list[i];
	return first;
}

void crash_block(struct crashes *c, const struct jvm *jvm, const char *reason,
		 uint64_t until_real_ns)
{
	char name[COHORT_SIZE];
	struct cohort *x;

	crash_cohort(jvm, name);
	x = find(c, name);
	if (!x) {
		x = make_room(c);
		if (!x)
			return;
		memset(x, 0, sizeof(*x));
		memcpy(x->name, name, sizeof(name));
	}
	snprintf(x->reason, sizeof(x->reason), "%s", reason);
	x->until_real_ns = until_real_ns;
	x->crashes++;
}

const struct cohort *crash_find(const struct crashes *c, const struct jvm *jvm, uint64_t real_ns)
{
	char name[COHORT_SIZE];
	const struct cohort *x;

	if (!c->n)
		return NULL;
	crash_cohort(jvm, name);
	x = find(c, name);
	return x && x->until_real_ns > real_ns ? x : NULL;
}

void crash_expire(struct crashes *c, uint64_t real_ns)
{
	for (unsigned i = 0; i < c->n;) {
		if (c->list[i].until_real_ns > real_ns)
			i++;
		else
			c->list[i] = c->list[--c->n];
	}
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
