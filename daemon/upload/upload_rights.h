/* The rights that kindling-upload gives up after reading secrets and creating directories. */
#pragma once

#include <stdbool.h>
#include "daemon/core/rights.h"

/* @programs: it may start programs (exec sinks). 0 or -errno. */
int upload_give_up_rights(const struct rights *r, bool keep_user, bool programs);
