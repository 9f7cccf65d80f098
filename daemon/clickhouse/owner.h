/* The labels of a process that have columns of their own in the tables. Pure. */
#pragma once

#include "daemon/core/labels.h"
#include "daemon/profile/profile.h"

struct clickhouse_owner {
	char namespace[LABEL_VALUE_SIZE], service[LABEL_VALUE_SIZE], version[LABEL_VALUE_SIZE],
		image[LABEL_VALUE_SIZE], pod[LABEL_VALUE_SIZE], container[LABEL_VALUE_SIZE],
		node[LABEL_VALUE_SIZE];
};

/* Fills in *ret for @process of @p. @node: the node's name; NULL = the label. */
void clickhouse_owner_of(const struct profile *p, uint32_t process, const char *node,
			 struct clickhouse_owner *ret);
