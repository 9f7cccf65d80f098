/* See outlet.h. */
#include "agent/base/outlet.h"

#include <stddef.h>

const struct outlet *outlet;
