/* The parts of HotSpot's generated code that differ between processors. */
#pragma once

#include "agent/base/arch.h"
#include "agent/base/guard.h"
#include "agent/hotspot/layout.h"

#if defined(__aarch64__)
#include "agent/hotspot/machine_aarch64.h"
#else
#include "agent/hotspot/machine_x86_64.h"
#endif
