/* Finds the rule of the settings (targets.rules) that decides about a JVM. */
#pragma once

#include <stdbool.h>
#include "daemon/core/config.h"
#include "daemon/discovery/facts.h"
#include "daemon/discovery/jvm.h"
#include "daemon/ground/fault.h"

/* The index of the first rule whose conditions all hold, -1 = none. Pure. */
int rules_find(const struct config *c, const struct jvm *jvm, const struct facts *facts);
/* A hash of the rules and of targets.mode. Results that are kept with the hash are outdated when it
 * changes. */
uint64_t rules_hash(const struct config *c);
/* "denied by targets.rules[1] (kindlingd.yaml:12): command \"*kafka*\""; @index -1 = no rule holds,
 * and targets.mode is opt-in. */
void rules_explain(const struct config *c, int index, struct fault *ret);
