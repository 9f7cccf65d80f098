/* Which rule of the settings decides about a JVM. */
#pragma once

#include <stdbool.h>
#include "daemon/core/config.h"
#include "daemon/core/fault.h"
#include "daemon/discovery/jvm.h"

/* What rules look at and struct jvm does not keep. FACTS_NULL, facts_free(). */
struct facts {
	char *command; /* words joined by one space, NUL-terminated; NULL = could not be read */
	char *environ; /* NUL-separated; NULL = could not be read */
	size_t environ_len;
	bool owner_says_no; /* in its environment, wherever there */
};
#define FACTS_NULL                               \
	{                                        \
		.command = NULL, .environ = NULL \
	}

/* @pid_dfd: directory of /proc/PID. What cannot be read stays NULL. */
void facts_read(int pid_dfd, struct facts *ret);
void facts_free(struct facts *f);

/* The first rule whose conditions all hold, -1 = none. Pure. */
int rules_find(const struct config *c, const struct jvm *jvm, const struct facts *facts);
/* Those of @rules that decide are the same ones? For what is kept while the settings may change. */
uint64_t rules_hash(const struct config *c);
/* "kept out by targets.rules[1] (kindlingd.yaml:12): command \"*kafka*\"" */
void rules_explain(const struct config *c, int index, struct fault *ret);
