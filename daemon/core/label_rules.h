/* labels.rules of the settings: other labels than those that were found. Pure. */
#pragma once

#include <stddef.h>
#include "daemon/core/config.h"
#include "daemon/core/labels.h"

/* Each of @n @rules whose conditions hold, one after the other, over what those before it made.
 * @name: of the JVM, which a condition may ask for beside its labels. */
void label_rules_apply(const struct config_label_rule *rules, unsigned n, const char *name,
		       struct labels *labels);
/* May @regex be one: it compiles, and costs little? 0, or -EINVAL with a sentence in @why. */
int label_rules_check_regex(const char *regex, char *why, size_t why_size);
