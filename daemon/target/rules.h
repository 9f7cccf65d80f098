/* Which rule of the settings decides about a JVM. */
#pragma once

#include <stdbool.h>
#include "daemon/core/config.h"
#include "daemon/discovery/facts.h"
#include "daemon/discovery/jvm.h"
#include "daemon/ground/fault.h"

/* The first rule whose conditions all hold, -1 = none. Pure. */
int rules_find(const struct config *c, const struct jvm *jvm, const struct facts *facts);
/* Those of @rules that decide are the same ones? For what is kept while the settings may change. */
uint64_t rules_hash(const struct config *c);
/* "kept out by targets.rules[1] (kindlingd.yaml:12): command \"*kafka*\"" */
void rules_explain(const struct config *c, int index, struct fault *ret);
