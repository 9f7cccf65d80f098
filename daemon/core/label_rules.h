/* labels.rules of the settings: changes the labels that were found. Pure. */
#pragma once

#include <stddef.h>
#include "daemon/core/config.h"
#include "daemon/core/labels.h"

/* Applies those of the @n rules whose conditions hold, in order; each sees the labels that the
 * rules before it have made. @name: the JVM's name, which conditions can test like a label. */
void label_rules_apply(const struct config_label_rule *rules, unsigned n, const char *name,
		       struct labels *labels);
/* Checks that @regex compiles, and can be matched in little time and memory. 0, or -EINVAL with a
 * sentence in @why. */
int label_rules_check_regex(const char *regex, char *why, size_t why_size);
