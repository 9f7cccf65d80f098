/* The executable mappings of this process, for naming native pcs. Agent's thread only. */
#pragma once

#include "agent/walker/walker.h"

void maps_refresh(void);
bool maps_find(uint64_t pc, struct walk_mapping *ret); /* looks anew, at most once a second */
uint64_t maps_bytes(void);
void maps_free(void);
