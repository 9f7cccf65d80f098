/* Finds the names of the virtual threads that thread_name_seek() left to the agent's thread. */
#pragma once

#include "agent/base/events.h"

extern const struct events_source sought_names_source;
