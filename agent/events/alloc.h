/* Allocation samples: a source of events, see events.h. */
#pragma once

#include "agent/base/events.h"

extern const struct events_source alloc_source;
