/* Gives up the rights of kindling-upload, after it has read secrets and created directories. */
#pragma once

#include <stdbool.h>
#include "daemon/core/rights.h"

/* @programs: it must start programs, for exec sinks. 0 or -errno. */
int upload_give_up_rights(const struct rights *r, bool keep_user, bool programs);
