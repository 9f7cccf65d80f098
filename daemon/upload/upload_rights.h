/* What kindling-upload gives up, once it has read secrets and made directories. */
#pragma once

#include <stdbool.h>
#include "daemon/core/rights.h"

/* @programs: it may start some (exec sinks). 0 or -errno. */
int upload_give_up_rights(const struct rights *r, bool keep_user, bool programs);
