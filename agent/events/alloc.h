/* Allocation samples; events.h starts and ends them. */
#pragma once

#include "agent/base/events.h"

extern const struct events_source alloc_source;
