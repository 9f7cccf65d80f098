/* See owner.h. */
#include "daemon/clickhouse/owner.h"

#include <string.h>
#include "daemon/ground/utf8.h"

/* Sets @value to @other if it is empty: windows of earlier versions have no labels. */
static void owner_set_if_empty(char value[LABEL_VALUE_SIZE], const char *other)
{
	if (!*value)
		(void)utf8_copy(value, LABEL_VALUE_SIZE, other, strlen(other));
}

void clickhouse_owner_of(const struct profile *p, uint32_t process, const char *node,
			 struct clickhouse_owner *ret)
{
	const struct profile_process *q = &p->processes[process];
	const char *labels = p->strings[q->labels];

	memset(ret, 0, sizeof(*ret));
	labels_get(labels, "namespace", ret->namespace);
	labels_get(labels, "service", ret->service);
	labels_get(labels, "version", ret->version);
	labels_get(labels, "image", ret->image);
	labels_get(labels, "pod", ret->pod);
	labels_get(labels, "container", ret->container);
	if (node)
		owner_set_if_empty(ret->node, node);
	else
		labels_get(labels, "node", ret->node);
	owner_set_if_empty(ret->service, p->strings[q->name]);
	owner_set_if_empty(ret->pod, p->strings[q->pod]);
	owner_set_if_empty(ret->container, p->strings[q->container]);
}
