/* See tenants.h. */
#include "daemon/target/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tenant *tenant_ref(struct tenant **list, const struct jvm *jvm)
{
	char name[TENANT_SIZE];
	struct tenant *t;

	(void)tenant_name(name, jvm->container_id, jvm->uid);
	for (t = *list; t && strcmp(t->name, name) != 0; t = t->next)
		;
	if (!t)
		t = calloc(1, sizeof(*t));
	if (t && !t->refs) {
		memcpy(t->name, name, sizeof(name));
		snprintf(t->log_name, sizeof(t->log_name), "tenant=%s", name);
		t->log.burst = TENANT_LINES_BURST;
		t->log.per_s = TENANT_LINES_PER_S;
		t->next = *list;
		*list = t;
	}
	if (t)
		t->refs++;
	return t;
}

void tenant_unref(struct tenant **list, struct tenant *t)
{
	struct tenant **link;

	if (!t || --t->refs)
		return;
	for (link = list; *link != t; link = &(*link)->next)
		;
	*link = t->next;
	log_limit_end(&t->log, t->log_name);
	free(t);
}
