/*
 * Limits the number of children that the warden has of each program. The data process has limits of
 * its own; this one holds even if an attacker controls it. A child counts until its end was
 * reported.
 */
#include "daemon/core/warden_priv.h"

#include <stdio.h>
#include "daemon/core/log_limit.h"
#include "daemon/ground/log.h"

#define CHILDREN_MAX 4096 /* of all programs */

static struct {
	struct {
		pid_t pid;
		enum warden_program program;
	} list[CHILDREN_MAX];
	unsigned n, of[WARDEN_PROGRAM_COUNT];
} children;

bool warden_children_full(const struct warden_settings *s, enum warden_program program)
{
	static struct log_limit limits[WARDEN_PROGRAM_COUNT];
	char who[300];

	if (children.of[program] < s->children_max[program] && children.n < CHILDREN_MAX)
		return false;
	limits[program].burst = 2;
	limits[program].per_s = 1;
	snprintf(who, sizeof(who), "event=warden.full program=%s", s->programs[program]);
	if (log_allowed(&limits[program], who))
		log_err("warden.full",
			"program=%s children=%u error=\"the limit of running programs is reached; "
			"the next one starts when one ends\"",
			log_str(s->programs[program]), children.of[program]);
	return true;
}

void warden_children_add(pid_t pid, enum warden_program program)
{
	children.list[children.n].pid = pid;
	children.list[children.n++].program = program;
	children.of[program]++;
}

bool warden_children_has(pid_t pid)
{
	for (unsigned i = 0; i < children.n; i++)
		if (children.list[i].pid == pid)
			return true;
	return false;
}

void warden_children_remove(pid_t pid)
{
	for (unsigned i = 0; i < children.n; i++) {
		if (children.list[i].pid != pid)
			continue;
		children.of[children.list[i].program]--;
		children.list[i] = children.list[--children.n];
		return;
	}
}
