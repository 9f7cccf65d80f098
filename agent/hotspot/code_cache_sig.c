/* See code_cache.h. */
#include "agent/hotspot/code_cache.h"

struct code_cache code_cache_sig;
