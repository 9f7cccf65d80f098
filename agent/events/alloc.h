/* Allocation samples; events.h starts and ends them. */
#pragma once

#include "agent/events/events.h"

extern const struct events_source alloc_source;
